package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/markdown"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Attachment is a file or a list that a question is about, with its first lines.
type Attachment struct {
	Name  string   `json:"name"`
	Text  string   `json:"text" jsonschema:"a path, or what shows the rest"`
	Lines []string `json:"lines"`
	Plain bool     `json:"-"` // a command printed it; else it is Markdown
}

// maxFindings is the number of findings that a question shows.
const maxFindings = 12

// Attachments returns what a question is about: output of failed commands, findings, replies, the change and pictures.
// What cannot be read is left out.
func Attachments(ctx context.Context, d rundir.Dir, q run.Question) []Attachment {
	var all []Attachment
	shown := map[string]bool{}
	file := func(name, digest string) {
		if digest == "" || shown[digest] {
			return
		}
		shown[digest] = true
		if f, err := rundir.FileOf(d, digest); err == nil && f != "" {
			all = append(all, Attachment{strings.ToUpper(name[:1]) + name[1:], d.Path(f), linesOf(d, f), false})
		}
	}
	const most = 40
	for _, p := range failedCommands(d, q) { // what the tests say, before what the agents say
		shown[p.Reply.Digest] = true
		all = append(all, outputOf(d, p, most))
	}
	if j := q.Judged; j != nil {
		if lines, f := findings(d, j); f != "" {
			all = append(all, Attachment{"Findings", d.Path(f), lines, true})
		}
		file("review", j.Reply)
	}
	if q.Found != nil {
		if f, err := rundir.FileOf(d, q.Found.Digest); err == nil && f != "" {
			all = append(all, Attachment{"Found", d.Path(f), findingLines(d, f), true})
		}
	}
	if q.Work != nil {
		file("output", q.Work.Digest)
	}
	for _, at := range q.Artifacts {
		file(at.Name, at.Digest)
	}
	if lines := changedLines(ctx, d, q); len(lines) > 0 {
		all = append(all, Attachment{"Change", shell.Sprintf("starter diff %s", d.Root), lines, true})
	}
	if folder := picturesOf(d, q.Pictures); folder != "" {
		all = append(all, Attachment{"Pictures", d.Path(folder), pictureNames(d, folder), true})
	}
	return all
}

// FailedCommands returns the last lines of the commands that failed and that a question is about.
func FailedCommands(d rundir.Dir, q run.Question) (all []Attachment) {
	const most = 20
	for _, p := range failedCommands(d, q) {
		all = append(all, outputOf(d, p, most))
	}
	return all
}

// failedCommands returns the ends of the failed commands that a question is about; none if they cannot be read.
func failedCommands(d rundir.Dir, q run.Question) []run.PassEnd {
	failed, err := rundir.FailedCommands(d, func(p run.PassEnd) bool {
		return p.ID != "" && slices.Contains(q.Checks, run.Value{Name: p.ID, Text: p.Value}) ||
			slices.ContainsFunc(q.Artifacts, func(at run.Attached) bool { return at.Digest == p.Reply.Digest })
	})
	if err != nil {
		return nil
	}
	return failed
}

func outputOf(d rundir.Dir, p run.PassEnd, most int) Attachment {
	file := rundir.ReplyFile(p.Pass)
	name := fmt.Sprintf("Output of %s (%s)", cmp.Or(p.ID, p.Step), p.CommandFailure())
	return Attachment{name, d.Path(file), endOf(d, file, most), true}
}

// findings lists the points of a structured verdict, blockers first.
func findings(d rundir.Dir, j *run.Judged) (lines []string, file string) {
	if j.Findings == nil {
		return nil, ""
	}
	file, err := rundir.FileOf(d, j.Findings.Digest)
	if err != nil || file == "" {
		return nil, ""
	}
	if lines = findingLines(d, file); lines == nil {
		return nil, ""
	}
	return lines, file
}

// findingLines lists the points in a file of findings, blockers first; nil: it cannot be read.
func findingLines(d rundir.Dir, file string) []string {
	raw, err := d.ReadFile(file)
	var r pass.Review
	if err = errors.Join(err, json.Unmarshal(raw, &r)); err != nil {
		return nil
	}
	lines := []string{}
	for _, b := range r.Blockers {
		b.Severity = "blocker"
		lines = append(lines, findingLine(b))
	}
	for _, f := range r.Findings {
		lines = append(lines, findingLine(f))
	}
	for _, g := range r.Gaps {
		g.Severity = "gap"
		lines = append(lines, findingLine(g))
	}
	if n := len(lines); n > maxFindings {
		lines = append(lines[:maxFindings:maxFindings], fmt.Sprintf("… and %d more", n-maxFindings))
	}
	return lines
}

func findingLine(f pass.Finding) string {
	at := f.File
	if at != "" && f.Line > 0 {
		at += fmt.Sprintf(":%d", f.Line)
	}
	return run.OneLine(strings.Join(slices.DeleteFunc([]string{f.Severity, at, f.Text},
		func(s string) bool { return s == "" }), "  "))
}

// changedLines is the table of the files that the run changed.
func changedLines(ctx context.Context, d rundir.Dir, q run.Question) []string {
	if q.Change == nil {
		return nil
	}
	c, drop, err := operations.Compare(ctx, d)
	if err != nil {
		return nil // the source may be on another host
	}
	table, err := c.Stat(ctx)
	if err = errors.Join(err, drop()); err != nil || strings.TrimSpace(table) == "" {
		return nil
	}
	lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
	if n := len(lines); n > maxFindings {
		lines = append(lines[:maxFindings-1:maxFindings-1], "…", lines[n-1])
	}
	return lines
}

// picturesOf returns the folder of the pictures with that manifest, or "".
func picturesOf(d rundir.Dir, manifest string) string {
	if manifest == "" {
		return ""
	}
	events, _, err := d.Events()
	if err != nil {
		return ""
	}
	for _, e := range slices.Backward(events) {
		var s run.Screenshots
		if e.Kind != run.KindScreenshots {
			continue
		}
		if e.Decode(&s); s.Manifest.Digest == manifest {
			return rundir.ShotsDir(s)
		}
	}
	return ""
}

func pictureNames(d rundir.Dir, folder string) []string {
	entries, err := d.ReadDir(folder)
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range entries {
		if path.Ext(f.Name()) == ".png" {
			names = append(names, f.Name())
		}
	}
	return names
}

// maxLines is the number of lines of a text that a question shows.
const maxLines = 400

// linesOf returns the first lines of a text, without the block of JSON at its end; none if the file cannot be read.
func linesOf(d rundir.Dir, file string) []string {
	raw, err := d.ReadFile(file)
	if err != nil {
		return nil
	}
	lines := strings.Split(markdown.WithoutBlock(strings.TrimSpace(string(raw))), "\n")
	if n := len(lines) - maxLines; n > 0 {
		lines = append(lines[:maxLines:maxLines], fmt.Sprintf("… and %d lines more", n))
	}
	return lines
}

// endOf returns the last lines of an output, where commands report failures; none if the file cannot be read.
func endOf(d rundir.Dir, file string, most int) []string {
	raw, err := d.ReadFile(file)
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if n := len(lines) - most; n > 0 {
		lines = append([]string{fmt.Sprintf("… %d lines before", n)}, lines[n:]...)
	}
	return lines
}
