package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// called is a call that was answered, and what its evidence is compared with.
type called struct {
	seq    int64
	row    int64 // seq of its row in traces.jsonl; 0: it has none
	about  run.Pass
	id     string
	failed bool // an attempt: its files are numbered
	late   int  // the number of an answer that came too late
	again  bool // the answer of an earlier call, used once more

	prompt, reply, envelope string // digests
}

// calls are the answered calls of a stream, and what says which of them hold.
type calls struct {
	all    []called
	asked  map[string]string // digest of the prompt that was sent last, by its file
	events []run.Event       // all of them, as far as a revert needs them
	resets []run.Range       // what resets of the workflow have abandoned: its calls are made, or found, again
}

// note takes note of one event.
func (c *calls) note(e run.Event) {
	bare := run.Event{Seq: e.Seq, Kind: e.Kind}
	switch e.Kind {
	case run.KindPassStart:
		var p run.PassStart
		e.Decode(&p)
		if c.asked == nil {
			c.asked = map[string]string{}
		}
		c.asked[promptFile(p.Pass)] = p.Prompt.Digest
	case run.KindPassAttempt:
		c.attempt(e)
	case run.KindPassEnd:
		c.end(e)
	case run.KindRunReverted:
		var r run.RunReverted
		if e.Decode(&r); r.State != nil {
			bare.Payload = fmt.Appendf(nil, `{"to":%d,"state":{}}`, r.To)
		}
		if r.Cause == "reset" {
			c.resets = append(c.resets, r.Abandoned)
		}
	}
	c.events = append(c.events, bare)
}

func (c *calls) attempt(e run.Event) {
	var p run.PassAttempt
	if e.Decode(&p); p.Output == nil || !p.Judged && p.Late == 0 {
		return
	}
	call := called{
		seq: e.Seq, about: p.Pass, id: attemptCall(p), late: p.Late, failed: true, prompt: run.DigestOf(p.Prompt), reply: p.Output.Digest, envelope: run.DigestOf(p.Envelope),
	}
	if p.Prompt != nil {
		call.row = e.Seq
	}
	c.all = append(c.all, call)
}

func (c *calls) end(e run.Event) {
	var p run.PassEnd
	e.Decode(&p)
	call := called{seq: e.Seq, row: e.Seq, about: p.Pass, id: p.Call, again: p.Reused}
	if p.Outcome == "ok" {
		call.prompt, call.reply, call.envelope = c.asked[promptFile(p.Pass)], run.DigestOf(p.Reply), run.DigestOf(p.Envelope)
	} else if last := c.lastAttempt(p.Call); last != nil { // the same call, and what it left is that of the attempt
		if !p.Attempted {
			last.row = e.Seq
		}
		return
	}
	c.all = append(c.all, call)
}

func (c *calls) lastAttempt(id string) *called {
	for i := range slices.Backward(c.all) {
		if c.all[i].id == id && c.all[i].failed {
			return &c.all[i]
		}
	}
	return nil
}

// reset says that a reset of the workflow has abandoned an event.
func (c *calls) reset(seq int64) bool {
	return slices.ContainsFunc(c.resets, func(r run.Range) bool { return r.First <= seq && seq <= r.Last })
}

// judgeCalls looks whether each answered call has an id, a row and files of its own. Where the stream was changed there is nothing to compare with.
func (x *examined) judgeCalls() error {
	if x.has(ChainMismatch, StreamLineUnreadable, StreamSeqGap, StreamSeqDuplicate) {
		return nil
	}
	x.judgeIDs()
	if err := x.judgeTraces(); err != nil {
		return err
	}
	c := &x.stream.calls
	holds, nth := seqs(run.InForce(c.events)), map[string]int{}
	for _, call := range c.all {
		key, n := failedKey(call.about), 1 // of one that was left behind: under whatever number
		switch {
		case call.late > 0:
			n = -call.late
		case call.failed && holds[call.seq]:
			nth[key]++
			n = nth[key]
		}
		for _, f := range call.files(n) {
			if err := x.judgeEvidence(call, f.name, f.digest, holds[call.seq]); err != nil {
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
			x.find(CallIDDuplicate, fmt.Sprintf("events %d and %d are of two calls with the id %s", seq, call.seq, call.id))
		}
	}
}

// judgeTraces looks whether traces.jsonl has one row of each call.
func (x *examined) judgeTraces() error {
	if slices.ContainsFunc(x.found, func(i Issue) bool { return i.file == TracesFile }) {
		return nil // it has lost rows
	}
	rows, _, err := Rows[TraceRow](x.dir, TracesFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c, of, first := &x.stream.calls, map[int64]string{}, map[string]int64{}
	for _, r := range rows {
		of[r.Seq] = r.Call
		seq, there := first[r.Call]
		switch {
		case r.Call == "" || c.reset(r.Seq):
		case !there:
			first[r.Call] = r.Seq
		case !r.Reused:
			x.lags(CallIDDuplicate, "", fmt.Sprintf("%s has two rows of call %s, of events %d and %d", TracesFile, r.Call, seq, r.Seq))
		}
	}
	var none []string
	for _, call := range c.all {
		if id, there := of[call.row]; call.row > 0 && (!there || id != call.id) {
			none = append(none, fmt.Sprintf("%s (event %d)", call.id, call.row))
		}
	}
	if len(none) > 0 {
		x.lags(EvidenceDamaged, TracesFile, fmt.Sprintf("%s has no row of %d calls, the first of them %s", TracesFile, len(none), none[0]))
	}
	return nil
}

// exhibit is one file of the evidence.
type exhibit struct{ name, digest string }

// files are the evidence of a call; nth counts the failed attempts of a pass.
func (c called) files(nth int) []exhibit {
	if c.failed {
		return []exhibit{{failedPrompt(c.about, nth), c.prompt}, {failedFile(c.about, nth), c.reply}, {failedEnvelope(c.about, nth), c.envelope}}
	}
	reply := replyFile(c.about, c.about.Number == 0 && c.about.Member == "" && c.about.Gives == "report")
	return []exhibit{{promptFile(c.about), c.prompt}, {reply, c.reply}, {envelopeFile(c.about), c.envelope}}
}

// judgeEvidence compares a file with the digest that an event names. What a revert has left behind lies in a folder that was set aside.
func (x *examined) judgeEvidence(c called, name, want string, holds bool) error {
	if want == "" {
		return nil
	}
	have, err := x.dir.digestOf(name)
	if err != nil || have == want {
		return err
	}
	if !holds {
		if there, err := x.dir.setAsideAs(name, want, c.failed); there || err != nil {
			return err
		}
	}
	said := fmt.Sprintf("call %s (event %d): %s ", c.id, c.seq, name)
	if have == "" {
		said += "is missing"
	} else {
		said += fmt.Sprintf("is not what the run recorded: its sha-256 is %s, not %s", have[:12], want[:min(12, len(want))])
	}
	x.lags(EvidenceDamaged, name, said)
	return nil
}

// setAsideAs looks for a file among those of its folder that reverts have set aside. numbered: under the name of any attempt.
func (d Dir) setAsideAs(name, want string, numbered bool) (bool, error) {
	folder, base := path.Split(name)
	folders, err := d.entries(path.Dir(path.Clean(folder)))
	if err != nil {
		return false, err
	}
	for _, f := range folders {
		if f != path.Base(folder) && !strings.HasPrefix(f, path.Base(folder)+"~") {
			continue
		}
		in := path.Join(path.Dir(path.Clean(folder)), f)
		files, err := d.entries(in)
		if err != nil {
			return false, err
		}
		for _, file := range files {
			stem, ext := strings.TrimSuffix(base, path.Ext(base)), path.Ext(base)
			if file != base && !(numbered && strings.HasPrefix(file, stem+"-") && path.Ext(file) == ext) {
				continue
			}
			if have, err := d.digestOf(path.Join(in, file)); have == want || err != nil {
				return err == nil, err
			}
		}
	}
	return false, nil
}

// entries are the names in a folder; none of one that is missing.
func (d Dir) entries(folder string) ([]string, error) {
	all, err := os.ReadDir(d.Path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names, err
}
