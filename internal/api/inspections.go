package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// maxText is the maximum size of a text in an output, in bytes, unless the input names another one.
const maxText = 60_000

// maxLine is the maximum length of a line about a question, in characters.
const maxLine = 400

// maxRows is the maximum number of rows in an output without a limit in its input.
const maxRows = 500

// cut shortens a text to a number of bytes, at the end of a line or of a character.
func cut(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	text = text[:most]
	if end := strings.LastIndexByte(text, '\n'); end >= 0 {
		text = text[:end+1]
	}
	return text, true
}

// Subject is the open question of a run with what it is about.
type Subject struct {
	RunID    string       `json:"run_id"`
	Question *Asked       `json:"question" jsonschema:"null: no question is open"`
	About    []Attachment `json:"about" jsonschema:"findings, outputs, changed files and pictures, with some lines"`
}

// Question shows the open question of a run, and what it is about. No server is needed.
func Question(ctx context.Context, h Host, in RunInput) (Subject, error) {
	d, err := h.find(in.Run)
	if err != nil {
		return Subject{}, err
	}
	now, err := d.Now()
	if err != nil {
		return Subject{}, err
	}
	s := Subject{RunID: now.State.RunID, About: []Attachment{}}
	q, open := now.State.Asks()
	if !open {
		return s, nil
	}
	asked := askedOf(&now.State, q)
	s.Question = &asked
	for _, a := range Attachments(ctx, d, q) {
		const most = 60
		if n := len(a.Lines) - most; n > 0 {
			a.Lines = append(a.Lines[:most:most], fmt.Sprintf("… and %d lines more", n))
		}
		lines := make([]string, 0, len(a.Lines))
		for _, line := range a.Lines {
			lines = append(lines, run.Cut(line, maxLine))
		}
		a.Lines = lines
		s.About = append(s.About, a)
	}
	return s, nil
}

// DiffInput is the input of [Diff].
type DiffInput struct {
	Run   string   `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	Paths []string `json:"paths,omitempty" jsonschema:"only these files or folders of the workspace"`
	Bytes int      `json:"bytes,omitempty" jsonschema:"maximum size of the patch; default 60000, at most 1000000"`
}

// Changes are the changes of a run.
type Changes struct {
	Files     []ChangedFile `json:"files" jsonschema:"the first 500"`
	Total     int           `json:"files_total"`
	Patch     string        `json:"patch"`
	Truncated bool          `json:"truncated" jsonschema:"the patch is longer: name paths"`
}

// ChangedFile is a file that a run changed. Bytes of a path that are not UTF-8 are shown as U+FFFD.
type ChangedFile struct {
	Path    string `json:"path"`
	OldPath string `json:"old_path"` // of a renamed file; else ""
	Kind    string `json:"kind"`     // added, removed, changed, renamed or mode
	Added   int    `json:"added"`    // lines; 0 for a binary file
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary"`
}

// ChangedFiles lists the files of changes.
func ChangedFiles(changes []git.Change) []ChangedFile {
	files := []ChangedFile{}
	for _, c := range changes {
		files = append(files, ChangedFile{
			Path: strings.ToValidUTF8(c.Path, "�"), OldPath: strings.ToValidUTF8(c.OldPath, "�"), Kind: string(c.Kind),
			Added: c.Added, Removed: c.Removed, Binary: c.Binary,
		})
	}
	return files
}

// errNothing refuses to compare a run that works on nothing.
var errNothing = errors.New("the run has neither a workspace nor an artifact: there is nothing to compare")

func errProjects(runID string, aliases []string) error {
	return fmt.Errorf("the run has projects, and each has its own changes: name one of them: %s",
		operations.ProjectNames(runID, aliases))
}

// OpenChanges compares the work of a run with its start. The caller calls drop.
func OpenChanges(ctx context.Context, d rundir.Dir) (c *git.Comparison, drop func() error, err error) {
	c, drop, err = operations.Compare(ctx, d)
	if errors.Is(err, rundir.ErrNoArtifact) {
		err = &InputError{errNothing}
		if claim, cerr := d.Claim(); cerr == nil && len(claim.Projects) > 0 {
			err = &InputError{errProjects(claim.RunID, claim.Projects)}
		}
	}
	return c, drop, err
}

// Diff shows the changes of a run as a patch. It needs git, and no server.
func Diff(ctx context.Context, h Host, in DiffInput) (out Changes, err error) {
	if in.Bytes < 0 || in.Bytes > 1_000_000 {
		return out, invalid("compare a run: %d bytes; use a number from 1 to 1000000", in.Bytes)
	}
	d, err := h.find(in.Run)
	if err != nil {
		return out, err
	}
	c, drop, err := OpenChanges(ctx, d)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	changes, err := c.Changes(ctx, in.Paths...)
	if err != nil {
		return out, err
	}
	patch, err := c.Patch(ctx, in.Paths...)
	out.Files, out.Total = ChangedFiles(changes[:min(len(changes), maxRows)]), len(changes)
	out.Patch, out.Truncated = cut(strings.ToValidUTF8(string(patch), "�"), cmp.Or(in.Bytes, maxText))
	return out, err
}

// Record is the record of a run as Markdown.
type Record struct {
	Text      string `json:"text" jsonschema:"Markdown"`
	Truncated bool   `json:"truncated"`
}

// Evidence returns the record of a run: its task, work, checks, decisions and costs. No server is needed.
func Evidence(_ context.Context, h Host, in RunInput) (Record, error) {
	d, err := h.find(in.Run)
	if err != nil {
		return Record{}, err
	}
	text, err := EvidencePage(d)
	if err != nil {
		return Record{}, err
	}
	var r Record
	r.Text, r.Truncated = cut(string(text), maxText)
	return r, nil
}

// EvidencePage is the record of a run as Markdown.
func EvidencePage(d rundir.Dir) ([]byte, error) {
	e, err := view.ReadRecord(d)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	err = report.Markdown(&page, e)
	return page.Bytes(), err
}

// CheckpointsInput is the input of [Checkpoints].
type CheckpointsInput struct {
	Run string `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	All bool   `json:"all,omitempty" jsonschema:"also the checkpoints after each step"`
}

// CheckpointList lists checkpoints.
type CheckpointList struct {
	Checkpoints []rundir.Listed `json:"checkpoints" jsonschema:"the newest 500, the newest last"`
	Total       int             `json:"total"`
}

// Checkpoints lists the checkpoints of a run, to which it can be reverted or from which it can be forked. No server is
// needed.
func Checkpoints(_ context.Context, h Host, in CheckpointsInput) (CheckpointList, error) {
	d, err := h.find(in.Run)
	if err != nil {
		return CheckpointList{}, err
	}
	if _, err := d.Claim(); err != nil {
		return CheckpointList{}, err
	}
	all, err := rundir.ListCheckpoints(d, in.All)
	return CheckpointList{append([]rundir.Listed{}, all[max(0, len(all)-maxRows):]...), len(all)}, err
}

// PassesInput is the input of [Passes].
type PassesInput struct {
	Run  string `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	Last int    `json:"last,omitempty" jsonschema:"maximum number of the newest ones; default 50, at most 500"`
}

// PassList lists passes, the oldest first.
type PassList struct {
	Passes []PassLine `json:"passes"`
	Total  int        `json:"total"`
}

// PassLine is one completed call, or one command.
type PassLine struct {
	Seq     int64    `json:"seq" jsonschema:"number of its event, which identifies the pass"`
	Number  int      `json:"number" jsonschema:"0 in a repeated stage"`
	Stage   string   `json:"stage"`
	Round   int      `json:"round"`
	Title   string   `json:"title"`
	Role    string   `json:"role"`
	Member  string   `json:"member"`
	Outcome string   `json:"outcome"`
	Verdict string   `json:"verdict"`
	Score   *float64 `json:"score"`
	CostUSD float64  `json:"cost_usd"`
	Known   string   `json:"cost_known" jsonschema:"exact, at_least or unknown"`
	Changed int      `json:"files_changed"`
	Ended   string   `json:"completed_at"`
	Prompt  string   `json:"prompt" jsonschema:"file in the run directory; or empty"`
	Reply   string   `json:"reply" jsonschema:"file in the run directory; or empty"`
}

// Passes lists the completed calls of a run. No server is needed.
func Passes(_ context.Context, h Host, in PassesInput) (PassList, error) {
	if in.Last < 0 || in.Last > 500 {
		return PassList{}, invalid("list passes: the last %d; use a number from 1 to 500", in.Last)
	}
	d, err := h.find(in.Run)
	if err != nil {
		return PassList{}, err
	}
	all, err := PassesOf(d)
	return PassList{Passes: all[max(0, len(all)-cmp.Or(in.Last, 50)):], Total: len(all)}, err
}

// PassesOf lists the completed calls in a run directory.
func PassesOf(d rundir.Dir) ([]PassLine, error) {
	e, err := view.ReadRecord(d)
	if err != nil {
		return []PassLine{}, err
	}
	all := make([]PassLine, 0, len(e.Passes))
	for _, p := range e.Passes {
		all = append(all, passLine(p))
	}
	return all, nil
}

// Name is that of the member or role, or else the title of a command.
func (p PassLine) Name() string { return cmp.Or(p.Member, p.Role, p.Title) }

func passLine(p view.Pass) PassLine {
	return PassLine{
		Seq: p.Seq, Number: p.Number, Stage: p.Stage, Round: p.Round, Title: pipeline.Fill(p.Title, p.Set, p.Round),
		Role: p.Role, Member: p.Member, Outcome: string(p.Outcome), Verdict: p.Verdict, Score: p.Score,
		CostUSD: p.USD, Known: string(p.CostKnown), Changed: p.Changed, Ended: p.CompletedAt, Prompt: p.Prompt,
		Reply: p.Reply,
	}
}
