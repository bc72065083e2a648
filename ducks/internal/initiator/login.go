package initiator

import (
	"bufio"
	"bytes"
	"crypto/md5" //nolint:gosec // CHAP of RFC 1994 is made with it
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The stages of a login, and the status of one that fails. Source: RFC 7143, section 11.12 and
// 11.13.
const (
	stageSecurity    = 0
	stageOperational = 1
	stageFull        = 3

	statusOK = 0
)

// RefusedError is the answer of a target that does not let a device in.
type RefusedError struct{ Status uint16 } // class and detail

// Error says why.
func (e *RefusedError) Error() string {
	why, ok := map[uint16]string{
		0x0201: "authentication failed: the user of CHAP or its secret is another one",
		0x0202: "this initiator may not use it",
		0x0203: "there is no such target for this initiator",
		0x0301: "the target cannot serve it now",
	}[e.Status]
	if !ok {
		why = "it says no more"
	}
	return fmt.Sprintf("the target refuses the login with 0x%04x: %s", e.Status, why)
}

// limits are what a target has agreed to.
type limits struct {
	send       int // bytes of data in one unit
	firstBurst int // bytes of a write that go with its command
	immediate  bool
}

// login is one that goes on.
type login struct {
	o     *Options
	w     *bufio.Writer
	r     io.Reader
	stage byte
	stat  uint32 // the next one that is expected
	cmd   uint32 // the number of the next command
	most  uint32 // the last one that the target takes now
	limits
}

// run logs in: first who this is, then how to speak.
func (l *login) run() error {
	l.limits = limits{send: 8192, firstBurst: 64 << 10, immediate: true}
	keys := []string{"InitiatorName=" + l.o.Initiator, "TargetName=" + l.o.Target,
		"SessionType=Normal"}
	methods := "None"
	if l.o.User != "" {
		methods = "CHAP"
	}
	got, next, err := l.ask(append(keys, "AuthMethod="+methods), l.o.User == "")
	if err != nil {
		return err
	}
	if method := got["AuthMethod"]; method == "CHAP" && l.o.User != "" {
		if next, err = l.chap(); err != nil {
			return err
		}
	} else if method != "" && method != "None" {
		return fmt.Errorf("the target wants %s, and no user is given", method)
	}
	if !next {
		if _, next, err = l.ask(nil, true); err != nil {
			return err
		}
	}
	if !next {
		return fmt.Errorf("%w: it does not go on after who this is", errProtocol)
	}
	l.stage = stageOperational
	return l.agree()
}

// agree says how this side speaks, and takes what the target wants.
func (l *login) agree() error {
	got, next, err := l.ask([]string{"HeaderDigest=None", "DataDigest=None",
		"MaxRecvDataSegmentLength=" + strconv.Itoa(maxReceive),
		"InitialR2T=Yes", "ImmediateData=Yes", "MaxBurstLength=" + strconv.Itoa(maxReceive),
		"FirstBurstLength=" + strconv.Itoa(l.firstBurst),
		"DefaultTime2Wait=2", "DefaultTime2Retain=0", "MaxOutstandingR2T=1", "MaxConnections=1",
		"DataPDUInOrder=Yes",
		"DataSequenceInOrder=Yes", "ErrorRecoveryLevel=0"}, true)
	for tries := 0; err == nil && !next && tries < 4; tries++ {
		var more map[string]string
		if more, next, err = l.ask(nil, true); err == nil {
			for k, v := range more {
				got[k] = v
			}
		}
	}
	if err == nil && !next {
		err = fmt.Errorf("%w: the login does not end", errProtocol)
	}
	if err != nil {
		return err
	}
	for key, into := range map[string]*int{"MaxRecvDataSegmentLength": &l.send,
		"FirstBurstLength": &l.firstBurst} {
		text, ok := got[key]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 512 || n > 1<<24 {
			return fmt.Errorf("%w: %s=%q", errProtocol, key, text)
		}
		*into = n
	}
	l.immediate = got["ImmediateData"] != "No"
	return nil
}

// chap proves that this side knows the secret.
func (l *login) chap() (next bool, err error) {
	got, _, err := l.ask([]string{"CHAP_A=5"}, false) // MD5
	if err != nil {
		return false, err
	}
	id, err := strconv.ParseUint(got["CHAP_I"], 10, 8)
	challenge, isHex := strings.CutPrefix(got["CHAP_C"], "0x")
	c, e := hex.DecodeString(challenge)
	if err != nil || e != nil || !isHex || len(c) == 0 {
		return false, fmt.Errorf("%w: its challenge of CHAP is %q, %q", errProtocol, got["CHAP_I"],
			got["CHAP_C"])
	}
	sum := md5.Sum(append(append([]byte{byte(id)}, l.o.Secret...), c...)) //nolint:gosec // see above
	_, next, err = l.ask([]string{"CHAP_N=" + l.o.User, "CHAP_R=0x" + hex.EncodeToString(sum[:])},
		true)
	return next, err
}

// ask sends keys, and returns those of the answer; next is whether the target goes on to the next
// stage.
func (l *login) ask(keys []string, done bool) (got map[string]string, next bool, err error) {
	p := new(pdu)
	p.header[0] = opLogin | immediate
	if done {
		to := byte(stageOperational)
		if l.stage == stageOperational {
			to = stageFull
		}
		p.header[1] = final | l.stage<<2 | to
	} else {
		p.header[1] = l.stage << 2
	}
	copy(p.header[8:14], l.o.isid[:])
	p.put32(24, l.cmd)
	p.put32(28, l.stat)
	for _, k := range keys {
		p.data = append(append(p.data, k...), 0)
	}
	if err := errors.Join(p.write(l.w), l.w.Flush()); err != nil {
		return nil, false, err
	}
	answer, err := readPDU(l.r)
	if err != nil {
		return nil, false, err
	}
	if answer.opcode() != opLoginReply {
		return nil, false, fmt.Errorf("%w: it answers a login with opcode 0x%02x", errProtocol,
			answer.opcode())
	}
	if status := uint16(answer.header[36])<<8 | uint16(answer.header[37]); status != statusOK {
		return nil, false, &RefusedError{status}
	}
	l.stat, l.most = answer.u32(24)+1, answer.u32(32)
	return parseKeys(answer.data), answer.header[1]&final != 0, nil
}

// parseKeys reads KEY=VALUE, each with a zero behind.
func parseKeys(data []byte) map[string]string {
	keys := make(map[string]string)
	for _, part := range bytes.Split(data, []byte{0}) {
		if k, v, ok := strings.Cut(string(part), "="); ok {
			keys[k] = v
		}
	}
	return keys
}
