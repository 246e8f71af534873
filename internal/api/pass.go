package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// PassInput is the input of [Pass].
type PassInput struct {
	Run  string `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	Pass int64  `json:"pass" jsonschema:"seq of the pass, as the list of passes has it"`
}

// PassRecord is one completed call with its texts.
type PassRecord struct {
	PassLine
	PromptText string            `json:"prompt_text" jsonschema:"what the agent was asked"`
	ReplyText  string            `json:"reply_text" jsonschema:"what the agent replied"`
	Frames     []json.RawMessage `json:"frames" jsonschema:"what the agent reported beside its reply, such as tool calls"`
	Patch      string            `json:"patch" jsonschema:"what the pass changed in the workspace; or empty"`
	Truncated  bool              `json:"truncated" jsonschema:"a text is longer than 60000 bytes and is cut"`
}

// MissingPassError reports a pass that a run does not have.
type MissingPassError struct{ Pass int64 }

func (e *MissingPassError) Error() string {
	return fmt.Sprintf("read pass %d: the run has no such pass; the list of passes has its seq", e.Pass)
}

// maxFrames is the maximum number of frames of a pass in an output.
const maxFrames = 500

// Pass returns the prompt, the reply, the frames and the changes of a completed call. No server is needed.
func Pass(ctx context.Context, h Host, in PassInput) (PassRecord, error) {
	d, err := h.find(in.Run)
	if err != nil {
		return PassRecord{}, err
	}
	e, err := view.ReadRecord(d)
	if err != nil {
		return PassRecord{}, err
	}
	i := slices.IndexFunc(e.Passes, func(p view.Pass) bool { return p.Seq == in.Pass })
	if i < 0 {
		return PassRecord{}, &MissingPassError{in.Pass}
	}
	p := e.Passes[i]
	out := PassRecord{PassLine: passLine(p), Frames: []json.RawMessage{}}
	if err := out.read(d, p); err != nil {
		return PassRecord{}, err
	}
	if p.Turn == 0 {
		return out, nil
	}
	patch, err := turnPatch(ctx, d, p.Turn)
	if err != nil {
		return PassRecord{}, err
	}
	var cutPatch bool
	out.Patch, cutPatch = cut(strings.ToValidUTF8(patch, "�"), maxText)
	out.Truncated = out.Truncated || cutPatch
	return out, nil
}

// read reads the texts of a pass. A missing file is an empty text.
func (r *PassRecord) read(d rundir.Dir, p view.Pass) error {
	text := func(file string) (string, error) {
		if file == "" {
			return "", nil
		}
		raw, err := d.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return strings.ToValidUTF8(string(raw), "�"), err
	}
	prompt, err := text(p.Prompt)
	if err != nil {
		return err
	}
	reply, err := text(p.Reply)
	if err != nil {
		return err
	}
	frames := ""
	if base, ok := strings.CutSuffix(p.Prompt, "prompt.md"); ok {
		if frames, err = text(base + "agent.jsonl"); err != nil {
			return err
		}
	}
	var cutPrompt, cutReply bool
	r.PromptText, cutPrompt = cut(prompt, maxText)
	r.ReplyText, cutReply = cut(reply, maxText)
	r.Truncated = cutPrompt || cutReply
	size := 0
	for line := range strings.Lines(frames) {
		line = strings.TrimSpace(line)
		if size += len(line); len(r.Frames) >= maxFrames || size > maxText {
			r.Truncated = true
			break
		}
		if json.Valid([]byte(line)) {
			r.Frames = append(r.Frames, json.RawMessage(line))
		}
	}
	return nil
}

// turnPatch is what a turn changed in the workspace.
func turnPatch(ctx context.Context, d rundir.Dir, turn int) (patch string, err error) {
	s, err := operations.OpenSnapshots(ctx, d)
	if err != nil {
		return "", err
	}
	v, err := s.Turn(turn)
	if err != nil {
		return "", err
	}
	c, drop, err := s.Compare(ctx, v.Before, v.Tree)
	if err != nil {
		return "", err
	}
	raw, err := c.Patch(ctx)
	return string(raw), errors.Join(err, drop())
}

// SnapshotList lists the snapshots of a run, the oldest first.
type SnapshotList struct {
	Snapshots []Snapshot `json:"snapshots"`
}

// Snapshot is one turn in a list: a completed call of a role that outputs changes, and the tree that it left.
type Snapshot struct {
	Turn      int          `json:"turn"`
	At        string       `json:"at"`
	Step      string       `json:"step"`
	Round     int          `json:"round"`
	Role      string       `json:"role"`
	Call      string       `json:"call"`
	Outcome   run.Category `json:"outcome"` // ok, or the error that ended it
	Changed   int          `json:"changed"` // files and folders
	Tree      string       `json:"tree"`
	USD       float64      `json:"usd"`
	Unknown   int          `json:"unknown_calls"` // calls that usd lacks
	Abandoned bool         `json:"abandoned"`     // reverted
}

// Snapshots lists the trees that the turns of a run left. No server is needed.
func Snapshots(_ context.Context, h Host, in RunInput) (SnapshotList, error) {
	d, err := h.find(in.Run)
	if err != nil {
		return SnapshotList{}, err
	}
	all, err := SnapshotsOf(d)
	return SnapshotList{all}, err
}

// SnapshotsOf lists the trees that the turns of a run left.
func SnapshotsOf(d rundir.Dir) ([]Snapshot, error) {
	versions, err := d.Versions()
	lines := []Snapshot{}
	for _, v := range versions {
		if v.Cause == rundir.FromTurn {
			lines = append(lines, Snapshot{
				v.Turn, v.TS, v.Step, v.Round, v.Role, v.Call, v.Outcome, v.Changed, v.Tree, v.USD, v.Unknown,
				v.Abandoned,
			})
		}
	}
	return lines, err
}
