package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// setRevertedAside moves the evidence of what a revert leaves behind to folders of their own, pass-025~1, pass-025~2, so that a pass that is done
// again writes over nothing. What the events before that still hold have written stays where it is. Called again after a crash it moves what is left;
// a file that is aside already stays as it is, unless everything is made again from the first event on.
func (p *projector) setRevertedAside(w *batchWriter, e run.Event) error {
	var r run.RunReverted
	if e.Decode(&r); r.State == nil {
		return nil
	}
	all, err := p.dir.readStream(0)
	if err != nil {
		return err
	}
	now, then := inForce(all.lines, e.Seq-1), inForce(all.lines, min(r.To, e.Seq-1))
	abandoned, restored := without(now, then), without(then, now)
	failed := map[string]int{}
	for _, k := range without(then, restored) {
		var a run.PassAttempt
		if k.Kind == run.KindPassAttempt {
			if k.Decode(&a); a.Output != nil && a.Late == 0 {
				failed[failedKey(a.Pass)]++
			}
		}
	}
	if err := p.setAside(abandoned, without(now, abandoned), failed); err != nil || len(restored) == 0 {
		return err
	}
	return p.bringBack(w, then, restored)
}

// without gives the events that are not among others.
func without(events, others []run.Event) []run.Event {
	in := seqs(others)
	return slices.DeleteFunc(slices.Clone(events), func(e run.Event) bool { return in[e.Seq] })
}

// seqs are the numbers of events.
func seqs(events []run.Event) map[int64]bool {
	in := map[int64]bool{}
	for _, e := range events {
		in[e.Seq] = true
	}
	return in
}

// bringBack writes the evidence of events again that an earlier revert had set aside, and that hold again. A copy stays where it was set aside.
func (p *projector) bringBack(w *batchWriter, all, restored []run.Event) error {
	again := seqs(restored)
	past := &projector{ctx: p.ctx, dir: p.dir, blobs: p.blobs, book: newState(), shadow: p.shadow}
	for _, e := range all {
		before := past.meta.State
		past.meta.fold(e)
		var c run.CheckpointCreated
		e.Decode(&c)
		switch {
		case e.Kind == run.KindCheckpointCreated && (!again[e.Seq] || lasting(c.ID)):
			rec, _, err := past.name(e, before)
			if err != nil {
				return err
			}
			past.book.Checkpoints = append(past.book.Checkpoints, rec)
		case again[e.Seq] && evident(e.Kind):
			if err := past.evidence(w, e, before); err != nil {
				return err
			}
		}
		if err := past.foldBook(e); err != nil {
			return err
		}
	}
	return nil
}

// evident says that events of a kind leave files that a revert sets aside.
func evident(k run.Kind) bool {
	switch k {
	case run.KindPassStart, run.KindPassAttempt, run.KindPassEnd, run.KindScreenshots, run.KindCheckpointCreated:
		return true
	}
	return false
}

// inForce gives those of the first events that hold.
func inForce(lines []string, last int64) []run.Event {
	n := min(last, int64(len(lines)))
	events := make([]run.Event, n)
	for i := range events {
		events[i] = lenient(lines[i])
		events[i].Seq = int64(i) + 1
	}
	return run.InForce(events)
}

func (p *projector) setAside(abandoned, kept []run.Event, then map[string]int) error {
	files, err := p.evidenceFiles(abandoned, then)
	if err != nil {
		return err
	}
	stay, err := p.evidenceFiles(kept, nil)
	if err != nil {
		return err
	}
	number := map[string]int{}
	for _, file := range files.names {
		if stay.has[file] {
			continue
		}
		dir := path.Dir(file)
		if number[dir] == 0 {
			p.book.Aside[dir]++
			number[dir] = p.book.Aside[dir]
		}
		if err := p.moveAside(file, path.Join(dir+"~"+strconv.Itoa(number[dir]), path.Base(file))); err != nil {
			return fmt.Errorf("move %s aside: %w", file, err)
		}
	}
	return nil
}

func (p *projector) moveAside(from, to string) error {
	if p.shadow != nil {
		p.shadow.move(from, to)
		return nil
	}
	if _, err := os.Lstat(p.dir.Path(from)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Lstat(p.dir.Path(to)); err == nil && !p.anew {
		return nil
	}
	if err := p.dir.Disk.Mkdir(p.dir.Path(path.Dir(to)), dirPerm); err != nil {
		return err
	}
	return p.dir.Disk.Rename(p.dir.Path(from), p.dir.Path(to))
}

// fileList is a list of files, each once.
type fileList struct {
	names []string
	has   map[string]bool
}

func (l *fileList) add(name string) {
	if !l.has[name] {
		l.has[name] = true
		l.names = append(l.names, name)
	}
}

// evidenceFiles names the files that some events have written beside artifact and notes. before is how many failed outputs each folder held already.
func (p *projector) evidenceFiles(events []run.Event, before map[string]int) (fileList, error) {
	l := fileList{has: map[string]bool{}}
	nth := map[string]int{}
	for _, e := range events {
		switch e.Kind {
		case run.KindPassStart:
			var s run.PassStart
			e.Decode(&s)
			l.add(promptFile(s.Pass))
			if s.Gives == "artifact" {
				l.add(backupFile(s.Pass, p.book.CurrentArtifactPath))
			}
		case run.KindPassAttempt:
			var a run.PassAttempt
			if e.Decode(&a); a.Output != nil {
				key := failedKey(a.Pass)
				n := attemptNumber(a, before[key]+nth[key])
				if a.Late == 0 {
					nth[key]++
				}
				l.add(failedFile(a.Pass, n))
				l.add(failedPrompt(a.Pass, n))
				l.add(failedEnvelope(a.Pass, n))
			}
		case run.KindPassEnd:
			var r run.PassEnd
			e.Decode(&r)
			l.add(replyFile(r.Pass, scored(r)))
			l.add(envelopeFile(r.Pass))
		case run.KindScreenshots:
			if err := p.pictureFiles(&l, e); err != nil {
				return l, err
			}
		case run.KindCheckpointCreated:
			var c run.CheckpointCreated
			if e.Decode(&c); lasting(c.ID) {
				continue
			}
			p.addFolder(&l, checkpointDir(c.ID))
		}
	}
	return l, nil
}

func (p *projector) pictureFiles(l *fileList, e run.Event) error {
	var s run.Screenshots
	if e.Decode(&s); s.Count == 0 {
		return nil
	}
	raw, err := p.blobs.Get(p.ctx, s.Manifest.Digest)
	if lost(err) {
		return nil // then nothing of it can be written over either
	}
	if err != nil {
		return err
	}
	var shots []run.Shot
	if err := json.Unmarshal(raw, &shots); err != nil {
		return fmt.Errorf("manifest of pictures %s: %w", s.Manifest.Digest, err)
	}
	l.add(path.Join(shotsDir(s), shotsFile))
	for _, shot := range shots {
		l.add(path.Join(shotsDir(s), shot.Name))
	}
	return nil
}

// addFolder adds the files of a folder that belongs to one event.
func (p *projector) addFolder(l *fileList, folder string) {
	if p.shadow != nil {
		for _, name := range p.shadow.in(folder) {
			l.add(name)
		}
		return
	}
	entries, err := os.ReadDir(p.dir.Path(folder))
	if err != nil {
		return // there is nothing to keep
	}
	for _, e := range entries {
		if !e.IsDir() {
			l.add(path.Join(folder, e.Name()))
		}
	}
}

// lasting says that a checkpoint's name has its moment in it: none other will ever have it.
func lasting(id string) bool {
	return strings.HasPrefix(id, "cp-PAUSE-") || strings.HasPrefix(id, "cp-REVERT-")
}
