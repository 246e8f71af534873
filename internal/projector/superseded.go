package projector

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// supersedeReverted moves the evidence that a revert supersedes to separate folders, pass-025~1, pass-025~2, so that a
// repeated pass overwrites nothing. The files of earlier events that are still in force stay in place. If it is called
// again after a crash, it moves the remaining files; a superseded file stays as it is, unless everything is rebuilt
// from the first event.
func (p *Projector) supersedeReverted(w *batchWriter, e run.Event) error {
	var r run.RunReverted
	if e.Decode(&r); r.State == nil {
		return nil
	}
	all, err := journal.ReadStream(p.Dir, layout.EventsFile, 0)
	if err != nil {
		return err
	}
	now, then := journal.InForce(all.Lines, e.Seq-1), journal.InForce(all.Lines, min(r.To, e.Seq-1))
	abandoned, restored := journal.Without(now, then), journal.Without(then, now)
	failed := map[string]int{}
	for _, k := range journal.Without(then, restored) {
		var a run.PassAttempt
		if k.Kind == run.KindPassAttempt {
			if k.Decode(&a); a.Output != nil && a.Late == 0 {
				failed[records.FailedKey(a.Pass)]++
			}
		}
	}
	if err := p.supersede(abandoned, journal.Without(now, abandoned), failed); err != nil || len(restored) == 0 {
		return err
	}
	return p.bringBack(w, then, restored)
}

// bringBack rewrites the evidence of events that an earlier revert superseded and that are in force again. The
// superseded copy stays.
func (p *Projector) bringBack(w *batchWriter, all, restored []run.Event) error {
	again := journal.Seqs(restored)
	past := &Projector{Ctx: p.Ctx, Dir: p.Dir, Blobs: p.Blobs, records: rundir.NewState(), shadow: p.shadow}
	for _, e := range all {
		before := past.meta.State
		past.meta.Fold(e)
		var c run.CheckpointCreated
		e.Decode(&c)
		switch {
		case e.Kind == run.KindCheckpointCreated && (!again[e.Seq] || Lasting(c.ID)):
			rec, _, err := past.name(e, before)
			if err != nil {
				return err
			}
			past.records.Checkpoints = append(past.records.Checkpoints, rec)
		case again[e.Seq] && evident(e.Kind):
			if err := past.evidence(w, e, before); err != nil {
				return err
			}
		}
		if err := past.foldRecords(e); err != nil {
			return err
		}
	}
	return nil
}

// evident reports whether events of a kind leave files that a revert supersedes.
func evident(k run.Kind) bool {
	switch k {
	case run.KindPassStart, run.KindPassAttempt, run.KindPassEnd, run.KindScreenshots, run.KindCheckpointCreated:
		return true
	}
	return false
}

func (p *Projector) supersede(abandoned, kept []run.Event, then map[string]int) error {
	files, err := p.evidenceFiles(abandoned, then)
	if err != nil {
		return err
	}
	stay, err := p.evidenceFiles(lastStarts(kept), nil)
	if err != nil {
		return err
	}
	number := map[string]int{}
	numberOf := func(dir string) int {
		if number[dir] == 0 {
			p.records.Superseded[dir]++
			number[dir] = p.records.Superseded[dir]
		}
		return number[dir]
	}
	for _, dir := range files.folders { // also if a crash came after all of its files were moved
		if !slices.Contains(stay.folders, dir) {
			numberOf(dir)
		}
	}
	for _, file := range files.names {
		if stay.has[file] {
			continue
		}
		dir := path.Dir(file)
		if err := p.moveSuperseded(file, path.Join(dir+"~"+strconv.Itoa(numberOf(dir)), path.Base(file))); err != nil {
			return fmt.Errorf("move %s aside: %w", file, err)
		}
	}
	return nil
}

// lastStarts leaves out the starts of attempts that have failed: the prompt of such an attempt has a separate file, and
// what is in the file of its start belongs to the start after it.
func lastStarts(events []run.Event) []run.Event {
	failed := map[string]bool{}
	for _, e := range events {
		var a run.PassAttempt
		if e.Kind == run.KindPassAttempt {
			if e.Decode(&a); a.Output != nil && a.Late == 0 {
				failed[a.Call] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(e run.Event) bool {
		var s run.PassStart
		if e.Kind != run.KindPassStart {
			return false
		}
		e.Decode(&s)
		return failed[s.Call]
	})
}

func (p *Projector) moveSuperseded(from, to string) error {
	if p.shadow != nil {
		p.shadow.move(from, to)
		return nil
	}
	if _, err := p.Dir.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := p.Dir.Lstat(to); err == nil && !p.anew {
		return nil
	}
	if err := p.Dir.Inside().Mkdir(p.Dir.Path(path.Dir(to)), layout.DirPerm); err != nil {
		return err
	}
	return p.Dir.Inside().Rename(p.Dir.Path(from), p.Dir.Path(to))
}

// fileList is a list of distinct files, and of the folders that belong to one event each.
type fileList struct {
	names   []string
	has     map[string]bool
	folders []string
}

func (l *fileList) add(name string) {
	if !l.has[name] {
		l.has[name] = true
		l.names = append(l.names, name)
	}
}

// evidenceFiles lists the files that some events have written, except artifact and notes. before is the number of
// failed outputs that each folder already contains.
func (p *Projector) evidenceFiles(events []run.Event, before map[string]int) (fileList, error) {
	l := fileList{has: map[string]bool{}}
	nth := map[string]int{}
	for _, e := range events {
		switch e.Kind {
		case run.KindPassStart:
			var s run.PassStart
			e.Decode(&s)
			l.add(layout.PromptFile(s.Pass))
			if s.Gives == "artifact" {
				l.add(layout.BackupFile(s.Pass, p.records.CurrentArtifactPath))
			}
		case run.KindPassAttempt:
			var a run.PassAttempt
			if e.Decode(&a); a.Output != nil {
				key := records.FailedKey(a.Pass)
				n := layout.AttemptNumber(a, before[key]+nth[key])
				if a.Late == 0 {
					nth[key]++
				}
				l.add(layout.FailedFile(a.Pass, n))
				l.add(layout.FailedPrompt(a.Pass, n))
				l.add(layout.FailedEnvelope(a.Pass, n))
			}
		case run.KindPassEnd:
			var r run.PassEnd
			e.Decode(&r)
			l.add(layout.ReplyFile(r.Pass))
			l.add(layout.EnvelopeFile(r.Pass))
			l.add(layout.VerdictFile(r.Pass))
			l.add(layout.FoundFile(r.Pass))
		case run.KindScreenshots:
			if err := p.pictureFiles(&l, e); err != nil {
				return l, err
			}
		case run.KindCheckpointCreated:
			var c run.CheckpointCreated
			if e.Decode(&c); Lasting(c.ID) {
				continue
			}
			p.addFolder(&l, layout.CheckpointDir(c.ID))
		}
	}
	return l, nil
}

func (p *Projector) pictureFiles(l *fileList, e run.Event) error {
	var s run.Screenshots
	if e.Decode(&s); s.Count == 0 {
		return nil
	}
	raw, err := p.Blobs.Get(p.Ctx, s.Manifest.Digest)
	if disk.Lost(err) {
		return nil // without a manifest there is nothing to overwrite
	}
	if err != nil {
		return err
	}
	var shots []run.Shot
	if err := json.Unmarshal(raw, &shots); err != nil {
		return fmt.Errorf("manifest of pictures %s: %w", s.Manifest.Digest, err)
	}
	l.add(path.Join(layout.ShotsDir(s), layout.ShotsFile))
	for _, shot := range shots {
		l.add(path.Join(layout.ShotsDir(s), shot.Name))
	}
	return nil
}

// addFolder adds the files of a folder that belongs to one event.
func (p *Projector) addFolder(l *fileList, folder string) {
	l.folders = append(l.folders, folder)
	if p.shadow != nil {
		for _, name := range p.shadow.in(folder) {
			l.add(name)
		}
		return
	}
	entries, err := p.Dir.ReadDir(folder)
	if err != nil {
		return // nothing to keep
	}
	for _, e := range entries {
		if !e.IsDir() {
			l.add(path.Join(folder, e.Name()))
		}
	}
}

// Lasting reports whether a checkpoint's name contains its time, so that no other checkpoint will have it.
func Lasting(id string) bool {
	return strings.HasPrefix(id, "cp-PAUSE-") || strings.HasPrefix(id, "cp-REVERT-")
}
