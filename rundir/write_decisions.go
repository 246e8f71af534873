package rundir

import (
	"cmp"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// FileOf returns the file with the newest reply, or else the artifact or the diff of that digest, relative to the
// directory, or "".
func FileOf(d Dir, want string) (string, error) {
	file, err := FileOfReply(d, want)
	if err != nil || file != "" || want == "" {
		return file, err
	}
	state, err := Records(d)
	if err != nil {
		return "", err
	}
	for _, name := range []string{state.CurrentArtifactPath, DeliveryPatch} {
		raw, err := d.ReadFile(name)
		if name != "" && err == nil && disk.Digest(raw) == want {
			return name, nil
		}
	}
	return "", nil
}

// FileOfReply returns the file with the newest reply of that digest, relative to the directory, or "" if no pass
// replied with it.
func FileOfReply(d Dir, digest string) (string, error) {
	return newestFile(d, func(p run.PassEnd) string {
		if p.Reply == nil || p.Reply.Digest != digest {
			return ""
		}
		return ReplyFile(p.Pass)
	})
}

// FileOfVerdict returns the file with the newest structured verdict of that digest, relative to the directory, or "".
func FileOfVerdict(d Dir, digest string) (string, error) {
	return newestFile(d, func(p run.PassEnd) string {
		if p.Findings.Blob() != digest {
			return ""
		}
		return VerdictFile(p.Pass)
	})
}

// FileOfFound returns the file with the newest findings of that digest about changes, relative to the directory, or "".
func FileOfFound(d Dir, digest string) (string, error) {
	return newestFile(d, func(p run.PassEnd) string {
		if p.Found.Blob() != digest {
			return ""
		}
		return FoundFile(p.Pass)
	})
}

// FailedCommands returns the failed commands that about selects, in the order of the journal. Of several with one name
// it returns the newest.
func FailedCommands(d Dir, about func(run.PassEnd) bool) (failed []run.PassEnd, err error) {
	events, _, err := d.Events()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, e := range slices.Backward(events) {
		if e.Kind != run.KindPassEnd {
			continue
		}
		var p run.PassEnd
		e.Decode(&p)
		name := cmp.Or(p.ID, p.Step)
		if !seen[name] && p.Reply != nil && p.CommandFailure() != "" && about(p) {
			seen[name], failed = true, append(failed, p)
		}
	}
	slices.Reverse(failed)
	return failed, nil
}

// newestFile returns what is found of the newest pass of which anything is, or "".
func newestFile(d Dir, find func(run.PassEnd) string) (string, error) {
	events, _, err := d.Events()
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(events) {
		if e.Kind != run.KindPassEnd {
			continue
		}
		var p run.PassEnd
		e.Decode(&p)
		if file := find(p); file != "" {
			return file, nil
		}
	}
	return "", nil
}
