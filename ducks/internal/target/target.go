// Package target exports images as iSCSI disks. It runs tgtd (tgt 1.0), with a control socket of
// its own, and keeps it as it should be: tgtd remembers nothing, so after each start of it all
// targets are made again.
package target

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Errors that callers look for.
var (
	ErrBusy    = errors.New("a device has a session on it")
	ErrUnknown = errors.New("there is no such target")
)

// Target is the disks of one device.
type Target struct {
	IQN        string
	Disks      []Disk
	Initiators []string // iSCSI names or addresses that may log in; none: nobody may
	User       string   // of CHAP; empty: it is not asked for
	Secret     string   // 12 to 16 characters, as some initiators demand
}

// Disk is a logical unit. The first of a target is LUN 1: LUN 0 is tgtd's own.
type Disk struct {
	Path   string // of the file
	Serial string // what the device knows it by, at most 36 letters and digits
}

// Session is a device that is logged in.
type Session struct {
	ID        int
	Initiator string // its iSCSI name
	Address   netip.Addr
}

// Options say how tgtd is run.
type Options struct {
	Dir    string // of its control socket, with at most 80 bytes in its path; nobody else may enter it
	Portal netip.AddrPort
	Logger *slog.Logger
}

// Targets are those of one tgtd. Its methods may be called concurrently.
type Targets struct {
	options Options
	ctx     context.Context
	stop    context.CancelFunc
	done    chan struct{} // closed when nobody starts tgtd again

	mu      sync.Mutex // held while tgtd is told something
	tgtd    *process   // nil while it does not run
	last    int        // tid
	targets map[string]*made

	traffic   []Traffic // as it was asked for last
	trafficAt time.Time
}

// made is a target with its number. tgtd may not run, and then does not know it.
type made struct {
	Target
	TID int
}

// The waits for tgtd.
const (
	answersWithin = 10 * time.Second
	endsWithin    = 10 * time.Second // what devices have asked for
	firstRestart  = 100 * time.Millisecond
	mostRestart   = 5 * time.Second
)

// maxSocketDir leaves room for the name of the socket: addresses of sockets have at most 108 bytes.
const maxSocketDir = 80

// Start takes over the tgtd that a process before this one has left, with its targets, or starts
// one. It returns when that takes connections. Where it fails, no tgtd was started.
func Start(ctx context.Context, o Options) (*Targets, error) {
	for _, tool := range []string{"tgtd", "tgtadm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("targets: %w: install tgt", err)
		}
	}
	if len(o.Dir) > maxSocketDir {
		return nil, fmt.Errorf("targets: %s: the path of a socket has at most %d bytes", o.Dir,
			maxSocketDir)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	t := &Targets{options: o, done: make(chan struct{})}
	var err error
	if t.targets, err = o.load(); err != nil {
		return nil, err
	}
	for _, m := range t.targets {
		t.last = max(t.last, m.TID)
	}
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	t.ctx, t.stop = context.WithCancel(context.Background())
	go t.keep()
	return t, nil
}

// Close lets tgtd and its sessions go on by themselves. Start takes them over.
func (t *Targets) Close() {
	t.stop()
	<-t.done
}

// End ends tgtd, with all sessions, and forgets all targets.
func (t *Targets) End() error {
	t.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.targets)
	err := t.options.save(t.targets)
	if t.tgtd != nil {
		err = errors.Join(err, t.tgtd.kill())
	}
	return err
}

// begin finds a tgtd or starts one, and makes what it lacks.
func (t *Targets) begin(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, err := t.options.find()
	if err != nil {
		return err
	}
	found := p != nil
	if !found {
		if p, err = t.options.start(); err != nil {
			return err
		}
	}
	if err := t.options.listens(ctx, p); err != nil {
		if !found {
			err = errors.Join(err, p.kill())
		}
		return err
	}
	t.tgtd = p
	for _, iqn := range slices.Sorted(maps.Keys(t.targets)) {
		if err := t.resume(ctx, t.targets[iqn]); err != nil {
			t.options.Logger.Error("a target is missing", "iqn", iqn, "err", err)
		}
	}
	return nil
}

// resume makes a target that tgtd may have, or a part of it. One with a session is whole: who may
// log in is said last.
func (t *Targets) resume(ctx context.Context, m *made) error {
	if sessions, err := t.sessions(ctx, m); err == nil && len(sessions) > 0 {
		return nil
	}
	_ = t.unmake(ctx, m) // it may have nothing of it
	return t.make(ctx, m)
}

// keep starts tgtd again whenever it ends.
func (t *Targets) keep() {
	defer close(t.done)
	wait := firstRestart
	for {
		began, ended := time.Now(), make(chan struct{})
		t.mu.Lock()
		if t.tgtd != nil {
			ended = t.tgtd.ended
		} else {
			close(ended)
		}
		t.mu.Unlock()
		select {
		case <-t.ctx.Done():
			return
		case <-ended:
		}
		t.mu.Lock()
		t.tgtd = nil
		t.mu.Unlock()
		if time.Since(began) > mostRestart {
			wait = firstRestart
		}
		t.options.Logger.Warn("tgtd has ended, and is started again", "in", wait, "said",
			t.options.said())
		timer := time.NewTimer(wait)
		select {
		case <-t.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		wait = min(2*wait, mostRestart)
		if err := t.begin(t.ctx); err != nil && t.ctx.Err() == nil {
			t.options.Logger.Error("tgtd does not run", "err", err)
		}
	}
}

// Put makes a target, or makes it anew where it differs from what it was. One on which a device has
// a session is not changed: ErrBusy. While tgtd does not run it is noted, and made with the others.
func (t *Targets) Put(ctx context.Context, of Target) error {
	if err := of.check(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m, known := t.targets[of.IQN]
	if known && m.equal(of) {
		return nil
	}
	if known {
		if err := t.remove(ctx, m, false); err != nil {
			return err
		}
	}
	t.last++
	m = &made{of, t.last}
	t.targets[of.IQN] = m
	err := t.options.save(t.targets)
	if err == nil && t.tgtd != nil {
		err = t.make(ctx, m)
	}
	if err != nil {
		delete(t.targets, of.IQN)
		err = errors.Join(err, t.options.save(t.targets))
	}
	return err
}

// Remove removes a target. One on which a device has a session stays, and the error is ErrBusy,
// unless sessions are to be closed.
func (t *Targets) Remove(ctx context.Context, iqn string, closing bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, known := t.targets[iqn]
	if !known {
		return fmt.Errorf("%s: %w", iqn, ErrUnknown)
	}
	return t.remove(ctx, m, closing)
}

// remove removes a target. Callers hold mu.
func (t *Targets) remove(ctx context.Context, m *made, closing bool) error {
	if t.tgtd != nil {
		sessions, err := t.sessions(ctx, m)
		if err != nil {
			return err
		}
		if len(sessions) > 0 && !closing {
			return fmt.Errorf("%s: %w: %s", m.IQN, ErrBusy, sessions[0].Initiator)
		}
		if err := t.unmake(ctx, m); err != nil {
			return err
		}
	}
	delete(t.targets, m.IQN)
	return t.options.save(t.targets)
}

// Sessions returns who is logged in to a target.
func (t *Targets) Sessions(ctx context.Context, iqn string) ([]Session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, known := t.targets[iqn]
	if !known {
		return nil, fmt.Errorf("%s: %w", iqn, ErrUnknown)
	}
	if t.tgtd == nil {
		return nil, nil
	}
	return t.sessions(ctx, m)
}

// make tells tgtd of a target. Who may log in is said last: nobody uses what is not whole.
func (t *Targets) make(ctx context.Context, m *made) error {
	err := t.run(ctx, m.disks())
	if err == nil && m.User != "" {
		if err = t.options.account(ctx, m.User, m.Secret); err == nil {
			err = t.run(ctx, [][]string{
				{"--mode", "account", "--op", "bind", "--tid", strconv.Itoa(m.TID), "--user", m.User}})
		}
	}
	if err == nil {
		err = t.run(ctx, m.initiators())
	}
	if err != nil {
		return errors.Join(err, t.unmake(context.WithoutCancel(ctx), m))
	}
	return nil
}

func (t *Targets) run(ctx context.Context, commands [][]string) error {
	for _, args := range commands {
		if _, err := t.options.tgtadm(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// unmake takes a target away, with its sessions and its user. Nobody logs in any more, then
// sessions are closed, and what devices have asked for is waited for: tgtd removes no disk that is
// at work.
func (t *Targets) unmake(ctx context.Context, m *made) error {
	tid := strconv.Itoa(m.TID)
	for _, who := range m.Initiators {
		// it may have said no such thing yet
		_, _ = t.options.tgtadm(ctx, "--mode", "target", "--op", "unbind", "--tid", tid,
			initiatorFlag(who), who)
	}
	err := t.delete(ctx, m)
	if m.User != "" {
		if _, e := t.options.tgtadm(ctx, "--mode", "account", "--op", "delete", "--user",
			m.User); err == nil {
			err = e
		}
	}
	return err
}

// delete closes the sessions of a target until it can be deleted.
func (t *Targets) delete(ctx context.Context, m *made) error {
	tid := strconv.Itoa(m.TID)
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	for {
		sessions, err := t.sessions(ctx, m) // an error: there is no such target
		for _, s := range sessions {
			_, e := t.options.tgtadm(ctx, "--mode", "conn", "--op", "delete", "--tid", tid, "--sid",
				strconv.Itoa(s.ID), "--cid", "0")
			err = errors.Join(err, e)
		}
		_, e := t.options.tgtadm(ctx, "--mode", "target", "--op", "delete", "--force", "--tid", tid)
		if e == nil {
			return nil
		}
		if len(sessions) == 0 && !strings.Contains(e.Error(), "still active") {
			return e
		}
		again := time.NewTimer(20 * time.Millisecond)
		select {
		case <-ctx.Done():
			again.Stop()
			return errors.Join(e, err, ctx.Err())
		case <-again.C:
		}
	}
}

func initiatorFlag(who string) string {
	if _, err := netip.ParseAddr(who); err == nil {
		return "--initiator-address"
	}
	return "--initiator-name"
}

// disks are the commands that make a target and its disks.
func (m *made) disks() [][]string {
	tid := strconv.Itoa(m.TID)
	list := [][]string{{"--mode", "target", "--op", "new", "--tid", tid, "--targetname", m.IQN}}
	for i, d := range m.Disks {
		lun := strconv.Itoa(i + 1)
		list = append(list, []string{"--mode", "logicalunit", "--op", "new", "--tid", tid, "--lun", lun,
			"--backing-store", d.Path, "--bstype", "rdwr"},
			[]string{"--mode", "logicalunit", "--op", "update", "--tid", tid, "--lun", lun,
				"--params", "thin_provisioning=1,vendor_id=ducks,product_id=disk,scsi_id=" + d.Serial +
					",scsi_sn=" + d.Serial})
	}
	return list
}

// initiators are the commands that say who may log in.
func (m *made) initiators() (list [][]string) {
	for _, who := range m.Initiators {
		list = append(list, []string{"--mode", "target", "--op", "bind", "--tid", strconv.Itoa(m.TID),
			initiatorFlag(who), who})
	}
	return list
}

var (
	iqnForm    = regexp.MustCompile(`^iqn\.\d{4}-\d{2}\.[a-z0-9.-]+(:[a-z0-9.:-]+)?$`)
	serialForm = regexp.MustCompile(`^[A-Za-z0-9]{1,36}$`)
	userForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	secretForm = regexp.MustCompile(`^[A-Za-z0-9]{12,16}$`)
)

// check refuses what tgtd would take for something else, or initiators would refuse.
func (t *Target) check() error {
	switch {
	case !iqnForm.MatchString(t.IQN) || len(t.IQN) > 223:
		return fmt.Errorf("target %q: want an iSCSI name: iqn.YYYY-MM.DOMAIN:NAME", t.IQN)
	case len(t.Disks) == 0:
		return fmt.Errorf("target %s has no disks", t.IQN)
	case t.User != "" && (!userForm.MatchString(t.User) || !secretForm.MatchString(t.Secret)):
		return fmt.Errorf("target %s: a user of CHAP has a name of a-z, 0-9, '.', '_' and '-', and a "+
			"secret of 12 to 16 letters and digits", t.IQN)
	}
	for _, d := range t.Disks {
		if !filepath.IsAbs(d.Path) || !serialForm.MatchString(d.Serial) {
			return fmt.Errorf("target %s: a disk has the absolute path of its file, and a serial number "+
				"of 1 to 36 letters and digits, not %q and %q", t.IQN, d.Path, d.Serial)
		}
	}
	for _, who := range t.Initiators {
		if _, err := netip.ParseAddr(who); err != nil && !iqnForm.MatchString(who) {
			return fmt.Errorf("target %s: initiator %q: want an iSCSI name or an address", t.IQN, who)
		}
	}
	return nil
}

func (m *made) equal(o Target) bool {
	return m.User == o.User && m.Secret == o.Secret && slices.Equal(m.Disks, o.Disks) &&
		slices.Equal(m.Initiators, o.Initiators)
}
