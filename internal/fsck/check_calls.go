package fsck

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/rundir"
)

// judgeCalls checks that each answered call has its own ID, row and files. With a changed stream there is nothing to
// compare.
func (x *examined) judgeCalls() error {
	if x.has(streamDamage()...) {
		return nil
	}
	x.judgeIDs()
	if err := x.judgeTraces(); err != nil {
		return err
	}
	c := &x.stream.calls
	holds, nth := c.reverts.InForce(), map[string]int{}
	for _, call := range c.all {
		key, n := records.FailedKey(call.about), 1 // of one that was left behind: under whatever number
		switch {
		case call.late > 0:
			n = -call.late
		case call.failed && holds.Has(call.seq):
			nth[key]++
			n = nth[key]
		}
		for _, f := range call.files(n) {
			if err := x.judgeEvidence(call, f.name, f.digest, holds.Has(call.seq)); err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeIDs looks for calls that have the same id.
func (x *examined) judgeIDs() {
	c, first := &x.stream.calls, map[string]int64{}
	for _, call := range c.all {
		seq, there := first[call.id]
		switch {
		case call.id == "" || c.reset(call.seq):
		case !there:
			first[call.id] = call.seq
		case !call.again:
			x.find(CallIDDuplicate, fmt.Sprintf("events %d and %d are of two calls with the id %s", seq, call.seq,
				call.id))
		}
	}
}

// judgeTraces checks that traces.jsonl has one row for each call.
func (x *examined) judgeTraces() error {
	if slices.ContainsFunc(x.found, func(i Issue) bool { return i.file == layout.TracesFile }) {
		return nil // it has lost rows
	}
	type traceRow struct {
		rundir.TraceRow
		Tool string `json:"tool"`
	}
	rows, _, err := rundir.Rows[traceRow](x.dir.Dir, layout.TracesFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c, of, first := &x.stream.calls, map[int64]string{}, map[string]int64{}
	for _, r := range rows {
		of[r.Seq] = r.Call
		seq, there := first[r.Call]
		switch {
		case r.Call == "" || r.Tool != "" || c.reset(r.Seq):
		case !there:
			first[r.Call] = r.Seq
		case !r.Reused:
			x.lags(CallIDDuplicate, "", fmt.Sprintf("%s has two rows of call %s, of events %d and %d",
				layout.TracesFile, r.Call, seq, r.Seq))
		}
	}
	var none []string
	for _, call := range c.all {
		if id, there := of[call.row]; call.row > 0 && (!there || id != call.id) {
			none = append(none, fmt.Sprintf("%s (event %d)", call.id, call.row))
		}
	}
	if len(none) > 0 {
		x.lags(EvidenceDamaged, layout.TracesFile,
			fmt.Sprintf("%s has no row of %d calls, the first of them %s", layout.TracesFile, len(none), none[0]))
	}
	return nil
}

// judgeEvidence compares a file with the digest that an event names. The evidence of reverted passes is in a superseded
// folder.
func (x *examined) judgeEvidence(c *called, name, want string, holds bool) error {
	if want == "" {
		return nil
	}
	have, err := x.dir.DigestOf(name)
	if err != nil || have == want {
		return err
	}
	if !holds {
		if there, err := supersededAs(x.dir.Dir, name, want, c.failed); there || err != nil {
			return err
		}
	}
	x.lags(EvidenceDamaged, name, fmt.Sprintf("call %s (event %d): %s", c.id, c.seq, notRecorded(name, have, want)))
	return nil
}

// notRecorded describes a file without the recorded sha-256. have is empty: the file is missing.
func notRecorded(name, have, want string) string {
	if have == "" {
		return name + " is missing"
	}
	return fmt.Sprintf("%s is not what the run recorded: its sha-256 is %.12s, not %.12s", name, have, want)
}

// supersededAs looks for a file in the superseded copies of its folder. numbered: under the name of any attempt.
func supersededAs(d rundir.Dir, name, want string, numbered bool) (bool, error) {
	folder, base := path.Split(name)
	folders, err := d.Entries(path.Dir(path.Clean(folder)))
	if err != nil {
		return false, err
	}
	for _, f := range folders {
		if f != path.Base(folder) && !strings.HasPrefix(f, path.Base(folder)+"~") {
			continue
		}
		in := path.Join(path.Dir(path.Clean(folder)), f)
		files, err := d.Entries(in)
		if err != nil {
			return false, err
		}
		for _, file := range files {
			stem, ext := strings.TrimSuffix(base, path.Ext(base)), path.Ext(base)
			if file != base && !(numbered && strings.HasPrefix(file, stem+"-") && path.Ext(file) == ext) {
				continue
			}
			if have, err := d.DigestOf(path.Join(in, file)); have == want || err != nil {
				return err == nil, err
			}
		}
	}
	return false, nil
}
