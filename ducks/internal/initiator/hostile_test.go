package initiator

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// unit returns the bytes of what a target sends.
func unit(opcode, flags byte, tag uint32, data string, change func(p *pdu)) []byte {
	p := &pdu{data: []byte(data)}
	p.header[0], p.header[1] = opcode, flags
	p.put32(16, tag)
	p.put32(32, 100) // it takes commands up to this number
	if change != nil {
		change(p)
	}
	var b bytes.Buffer
	_ = p.write(&b) // it never fails
	return b.Bytes()
}

// loggedIn is what a target says to a login without a user.
func loggedIn() []byte {
	return append(unit(opLoginReply, final|stageOperational, 0, "AuthMethod=None\x00", nil),
		unit(opLoginReply, final|stageOperational<<2|stageFull, 0,
			"MaxRecvDataSegmentLength=8192\x00FirstBurstLength=4096\x00", nil)...)
}

// scripted returns a Dial to a target that says what is given, and then nothing; what it hears goes
// to heard.
func scripted(says []byte, heard io.Writer) func(context.Context, string) (net.Conn, error) {
	return func(context.Context, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() { _, _ = io.Copy(heard, there) }() // until the connection ends
		go func() { _, _ = there.Write(says) }()
		return here, nil
	}
}

// A target that answers nothing, or something else than it may, ends the session, and all that
// waits for it.
func TestTargetsThatMisbehave(t *testing.T) {
	for what, says := range map[string][]byte{
		"nothing":       nil,
		"no login":      unit(opDataIn, final, 0, "", nil),
		"another stage": unit(opLoginReply, 0, 0, "", nil),
		"a method":      unit(opLoginReply, final|stageOperational, 0, "AuthMethod=KRB5\x00", nil),
		"a length": append(loggedIn()[:48+16:48+16],
			unit(opLoginReply, final|stageOperational<<2|stageFull, 0, "MaxRecvDataSegmentLength=7\x00",
				nil)...),
		"too long a unit":    append(loggedIn(), opDataIn, final, 0, 0, 0, 0xff, 0xff, 0xff),
		"silence":            loggedIn(),
		"an unknown command": append(loggedIn(), unit(opResponse, final, 77, "", nil)...),
		"too much": append(loggedIn(),
			unit(opDataIn, final|1, 1, "more than nothing", nil)...),
		"a write of nothing": append(loggedIn(), unit(opR2T, final, 1, "", func(p *pdu) {
			p.put32(44, 512)
		})...),
		"a failure": append(loggedIn(), unit(opResponse, final, 1, "", func(p *pdu) {
			p.header[2] = 1
		})...),
		"an end":            append(loggedIn(), unit(opAsync, final, noTag, "", nil)...),
		"an unknown opcode": append(loggedIn(), unit(0x3e, final, 1, "", nil)...),
		"a check of no sense": append(loggedIn(), unit(opResponse, final, 1, "", func(p *pdu) {
			p.header[3] = statusCheck
		})...),
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := Login(t.Context(), Options{Target: "iqn.2026-11.test:a", Timeout: time.Second,
					Dial: scripted(says, io.Discard)})
				if err != nil {
					return
				}
				if _, err := s.Disk(t.Context(), 1); err == nil {
					t.Error("it gives a disk")
				}
				s.Close()
			})
		})
	}
}

// A target that asks whether the device is there is answered with its tag.
func TestPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard bytes.Buffer
		ping := unit(opNopIn, final, noTag, "", func(p *pdu) { p.put32(20, 1234) })
		s, err := Login(t.Context(),
			Options{Target: "iqn.2026-11.test:a", Dial: scripted(append(loggedIn(), ping...), &heard)})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.Close()
		synctest.Wait()
		last := heard.Bytes()[heard.Len()-headerBytes:]
		if last[0] != opNopOut|immediate || binary.BigEndian.Uint32(last[20:]) != 1234 ||
			binary.BigEndian.Uint32(last[16:]) != noTag {
			t.Errorf("it answers % x", last)
		}
	})
}

// CHAP as in RFC 1994, with a response that was computed elsewhere: MD5 of 01, "secretsecret" and
// 00 to 03.
func TestChap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard bytes.Buffer
		says := bytes.Join([][]byte{unit(opLoginReply, 0, 0, "AuthMethod=CHAP\x00", nil),
			unit(opLoginReply, 0, 0, "CHAP_A=5\x00CHAP_I=1\x00CHAP_C=0x00010203\x00", nil),
			unit(opLoginReply, final|stageOperational, 0, "", nil),
			unit(opLoginReply, final|stageOperational<<2|stageFull, 0, "", nil)}, nil)
		s, err := Login(t.Context(),
			Options{Target: "iqn.2026-11.test:a", User: "pc", Secret: "secretsecret",
				Dial: scripted(says, &heard)})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		synctest.Wait()
		if want := []byte("CHAP_N=pc\x00CHAP_R=0xcd52a453f1dd4692442a6a1b33bec1a5\x00"); !bytes.Contains(
			heard.Bytes(), want) {
			t.Errorf("it says %q", heard.Bytes())
		}
		if bytes.Contains(heard.Bytes(), []byte("secretsecret")) {
			t.Error("it sends the secret")
		}
		for _, challenge := range []string{"CHAP_I=x\x00CHAP_C=0x00", "CHAP_I=1\x00CHAP_C=00",
			"CHAP_I=1\x00CHAP_C=0x0", "CHAP_I=1\x00CHAP_C=0x", ""} {
			says := append(unit(opLoginReply, 0, 0, "AuthMethod=CHAP\x00", nil),
				unit(opLoginReply, 0, 0, challenge, nil)...)
			if _, err := Login(t.Context(),
				Options{User: "pc", Timeout: time.Second, Dial: scripted(says, io.Discard)}); !errors.Is(err,
				errProtocol) {
				t.Errorf("challenge %q: %v", challenge, err)
			}
		}
	})
}

// Whatever a target says, a device ends with an error or goes on: it does not hang, and takes no
// more than it wants.
func FuzzTarget(f *testing.F) {
	f.Add(loggedIn())
	f.Add(append(loggedIn(), unit(opResponse, final, 1, "", nil)...))
	f.Add(append(append(loggedIn(), unit(opResponse, final, 1, "", nil)...),
		unit(opDataIn, final|1, 2, "\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00\x02\x00", nil)...))
	f.Add(append(loggedIn(), unit(opNopIn, final, noTag, "", nil)...))
	f.Fuzz(func(t *testing.T, says []byte) {
		dial := func(context.Context, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, there) }()
			go func() {
				_, _ = there.Write(says)
				_ = there.Close()
			}()
			return here, nil
		}
		s, err := Login(t.Context(), Options{Timeout: 10 * time.Second, Dial: dial})
		if err != nil {
			return
		}
		if d, err := s.Disk(t.Context(), 1); err == nil {
			_ = d.ReadAt(t.Context(), make([]byte, d.Block()), 0)
			_ = d.WriteAt(t.Context(), make([]byte, d.Block()), 0)
		}
		s.Close()
	})
}
