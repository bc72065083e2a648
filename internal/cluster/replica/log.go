package replica

import (
	"context"
	"fmt"
	"log/slog"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/durable"
)

const (
	logFile   = 8 << 20  // bytes of a file
	maxRecord = 16 << 20 // a hint with its names

	// logSlack is how large the log may be beside twice what lives in it.
	logSlack = 4 * logFile

	// keySize is about the size of the record of a key.
	keySize = 96

	// movedAtOnce is how many records are written again under one lock.
	movedAtOnce = 256

	// logReserve is what the log has room for before anything is taken that it must log.
	logReserve = 2 << 20

	defaultDigests = 1 << 20
)

// Open opens the data of a node on its store, which is open. It reads which series there are, and
// its own log.
func Open(o Options) (*Replica, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxDigests == 0 {
		o.MaxDigests = defaultDigests
	}
	if o.LogFile == 0 {
		o.LogFile = logFile
	}
	r := &Replica{
		journal:     journal{o: &o, slack: logSlack},
		index:       newIndex(&o),
		streams:     make(map[uint64]*stream),
		coordinated: make(map[uint64]uint64),
	}
	r.adoptQueue = adoptQueue{store: o.Local, logger: o.Logger, clock: o.Now, x: &r.index}
	if err := r.index.load(context.Background()); err != nil {
		return nil, err
	}
	return r, r.open()
}

// open opens the log.
func (j *journal) open() (err error) {
	o := j.o
	if err := o.FS.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	if err := durable.SyncDir(o.FS, o.FS.PathDir(o.Dir)); err != nil {
		return err
	}
	j.log, err = wal.Open(wal.Options{FS: o.FS, Dir: o.FS.PathJoin(o.Dir, "log"), FileSize: o.LogFile,
		MaxRecord: maxRecord,
		Logger:    o.Logger, OnFailure: o.OnFailure, Now: o.Now})
	if err != nil {
		return err
	}
	if err := j.begin(); err != nil {
		_ = j.log.Close() // the error before it says more
		return err
	}
	return nil
}

// begin replays the log, and makes the number of this start durable.
func (j *journal) begin() error {
	report, err := j.log.Replay(0, j.replay)
	if err != nil {
		return err
	}
	if j.stats.Lost = len(report.Damaged) + len(report.Missing); j.stats.Lost > 0 {
		j.o.Logger.Error("the log of the cluster is damaged: hints for other nodes may be lost; a "+
			"comparison with other copies of the data finds what is missing",
			"places", j.stats.Lost)
	}
	// The clock as well: a log that was lost must not make this start look older than the last.
	j.boot = max(j.boot+1, uint64(max(j.o.Now().UnixNano(), 0)))
	if err := j.checkRoom(); err != nil {
		j.o.Logger.Error("the log of the cluster has no room: the node takes no copies and no hints "+
			"until there is some", "err", err)
		return nil
	}
	if err := j.logBoot(); err != nil {
		return err
	}
	return j.log.Sync()
}

// logBoot logs the number of this start, unless it did already: in front of all else. Where the
// disk is full at the start the log has nothing of it: after the next one the clock alone tells
// which is later. mu is held, or nobody else is here.
func (j *journal) logBoot() error {
	if j.bootLogged {
		return nil
	}
	_, err := j.log.AppendTwice(bootRecord(j.boot))
	j.bootLogged = err == nil
	return err
}

// append appends a record of this start. mu is held.
func (j *journal) append(rec []byte) (wal.LSN, error) {
	if err := j.logBoot(); err != nil {
		return 0, err
	}
	return j.log.Append(rec)
}

// replay takes a record of the log.
func (j *journal) replay(lsn wal.LSN, rec []byte) error {
	e, err := parse(rec)
	if err != nil {
		return err
	}
	switch e.kind {
	case recordBoot:
		j.boot = max(j.boot, e.boot)
	case recordSettled:
		j.keys.settle(j.keys.sender(e.sender), e.boot, e.number)
	case recordDrop:
		j.hints.remove(e.number)
	case recordHint:
		if e.hint.Change, err = j.o.Codec.Read(e.change); err != nil {
			return err
		}
		j.hints.put(e.hint, lsn, len(rec), j.o.Names)
	}
	if e.key == nil {
		return nil
	}
	b := e.key.key.Batch
	if e.kind == recordKey {
		j.keys.settle(j.keys.sender(b.Coordinator), b.Boot, e.number)
	}
	e.key.lsn = lsn
	if old := j.keys.find(e.key.key); old != nil {
		old.lsn = lsn
	} else {
		j.keys.add(e.key)
	}
	return nil
}

// checkRoom refuses what would need the log where the disk is full: a log that cannot write ends
// the node.
func (j *journal) checkRoom() error {
	if j.o.MinFree == 0 || j.log.Stats().Room >= logReserve {
		return nil
	}
	usage, err := j.o.FS.GetDiskUsage(j.o.Dir)
	if err == nil && int64(usage.AvailBytes) < j.o.MinFree {
		return fmt.Errorf("%w: %d bytes are free, and %d stay so: make space, then try again",
			replication.ErrFull, usage.AvailBytes, j.o.MinFree)
	}
	return nil
}

// compact writes what lives in an old part of the log again, and removes that part: one old hint
// must not keep everything behind it.
func (j *journal) compact() error {
	if !j.compacting.TryLock() {
		return nil
	}
	defer j.compacting.Unlock()
	j.mu.Lock()
	if j.log.Size() <= j.slack+2*(j.hints.log+int64(j.keys.count)*keySize) {
		j.mu.Unlock()
		return nil
	}
	if j.checkRoom() != nil {
		j.mu.Unlock()
		return nil // with the next sync
	}
	cut := j.log.End()
	old := j.oldRecords(cut)
	j.bootLogged = false
	err := j.logBoot()
	for id, s := range j.keys.of {
		if err == nil {
			_, err = j.append(settledRecord(id, s.boot, s.below))
		}
	}
	j.mu.Unlock()
	for len(old) > 0 && err == nil {
		n := min(len(old), movedAtOnce)
		err = j.move(old[:n], cut)
		old = old[n:]
	}
	if err != nil {
		return err
	}
	if err := j.log.Sync(); err != nil {
		return err
	}
	return j.log.RemoveBelow(cut)
}

// liveRecord is a record that is to be written again: of a hint, or of a key.
type liveRecord struct {
	hint uint64
	key  *priorResult
}

// oldRecords returns what lives in the log below a cut.
func (j *journal) oldRecords(cut wal.LSN) (list []liveRecord) {
	for i, k := range j.hints.kept {
		if k.lsn < cut {
			list = append(list, liveRecord{hint: j.hints.list[i].Number})
		}
	}
	for _, s := range j.keys.of {
		for _, batch := range s.batches {
			for _, e := range batch {
				if e.lsn != 0 && e.lsn < cut {
					list = append(list, liveRecord{key: e})
				}
			}
		}
	}
	return list
}

// move writes records again, but those of what has gone meanwhile.
func (j *journal) move(list []liveRecord, cut wal.LSN) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, o := range list {
		var rec []byte
		var to *wal.LSN
		if o.key != nil {
			if o.key.settled {
				continue
			}
			rec, to = j.keys.record(o.key), &o.key.lsn
		} else {
			i, ok := j.hints.find(o.hint)
			if !ok || j.hints.kept[i].lsn >= cut {
				continue
			}
			h := replication.Hint{Number: o.hint, For: j.hints.list[i].For, Change: j.hints.kept[i].change}
			var err error
			if rec, err = j.hintRecord(&h, nil); err != nil {
				return err
			}
			to = &j.hints.kept[i].lsn
		}
		lsn, err := j.append(rec)
		if err != nil {
			return err
		}
		*to = lsn
	}
	return nil
}
