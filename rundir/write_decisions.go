package rundir

import (
	"cmp"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// FileOf returns the newest file with a reply, a verdict or findings of that digest, or else the artifact or the diff,
// relative to the directory, or "".
func FileOf(d Dir, want string) (string, error) {
	if want == "" {
		return "", nil
	}
	events, _, err := d.Events()
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(events) {
		if e.Kind != run.KindPassEnd {
			continue
		}
		p := run.PayloadOf[run.PassEnd](e)
		switch want {
		case run.DigestOf(p.Reply):
			return ReplyFile(p.Pass), nil
		case p.Findings.Blob():
			return VerdictFile(p.Pass), nil
		case p.Found.Blob():
			return FoundFile(p.Pass), nil
		}
	}
	state, err := Records(d)
	if err != nil && !disk.Missing(err) {
		return "", err
	}
	for _, name := range []string{state.CurrentArtifactPath, DeliveryPatch} {
		if digest, err := d.DigestOf(name); name != "" && err == nil && digest == want {
			return name, nil
		}
	}
	return "", nil
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
