package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// group is a round of a stage, with its passes.
type group struct {
	Stage string // its name in the journal
	Title string
	Note  string
	Bad   bool
	Open  bool
	Rows  []view.Pass
	Texts []texts // prompts, replies and changed files; only of ordinary pipelines
}

// texts are the prompt and the reply of a pass, and the files that it changed.
type texts struct {
	Title, Prompt, Reply string
	Plain                bool // the reply is what a command printed
	Changed              changedFiles
	Left                 string // why a text is missing or cut
}

// maxText is the maximum length of one text in bytes.
const maxText = 32 << 10

// textsOf reads the texts of a pass within the remaining space.
func (s source) textsOf(p view.Pass, space *int) texts {
	out := texts{Plain: p.Value != "", Title: strings.TrimSpace(view.Title(p.By()) + " " + p.Item)}
	if result := p.Result(); result != "" {
		out.Title += ": " + result
	}
	for _, part := range []struct {
		file string
		to   *string
	}{{p.Reply, &out.Reply}, {p.Prompt, &out.Prompt}} {
		if part.file == "" {
			continue
		}
		raw, err := readLocal(s.dir, part.file)
		switch {
		case err != nil:
			out.Left = "Not in the directory: " + part.file
		case *space <= 0:
			out.Left = "Left out for its size: " + part.file
		default:
			if len(raw) > maxText {
				raw, out.Left = raw[:maxText], "Cut; the whole is in "+part.file
			}
			*part.to = strings.ToValidUTF8(string(raw), "?")
			*space -= len(raw)
		}
	}
	return out
}

// passesWith selects passes.
func passesWith(e view.Record, selected func(view.Pass) bool) []view.Pass {
	return slices.DeleteFunc(slices.Clone(e.Passes), func(p view.Pass) bool { return !selected(p) })
}

// groups groups the passes by round. If there are more than the page shows, the last are kept.
func (v *page) groups(s source) []group {
	passes := newest(v, s.found.Passes, s.opt.Rows, "pass")
	var all []group
	last, left := "", s.opt.Texts
	room := newSpace(s.opt)
	for _, p := range passes {
		if key := fmt.Sprint(p.Stage, "\x00", p.Round, "\x00", p.Set); key != last || len(all) == 0 {
			all, last = append(all, group{Stage: p.Stage, Title: s.title(p)}), key
		}
		g := &all[len(all)-1]
		if s.state.Wording == run.WordingStages {
			texts := s.textsOf(p, &left)
			texts.Changed = s.filesOf(p, &room)
			g.Texts = append(g.Texts, texts)
		}
		g.Rows, g.Bad = append(g.Rows, p), g.Bad || p.Bad()
	}
	room.cut(v)
	for i := range all {
		all[i].sum()
		all[i].Open = all[i].Bad || i == len(all)-1
	}
	return all
}

// words returns the vocabulary of the run.
func (s source) words() run.Vocabulary { return s.state.Wording.Words() }

// title names a round: a set with its theme, a round of a loop with its number.
func (s source) title(p view.Pass) string {
	if set := p.Set; set != "" {
		for _, one := range s.figures.Sets {
			if one.ID == set && one.Theme != "" {
				return set + " · " + one.Theme
			}
		}
		return set
	}
	stage := s.found.History.Stages[p.Stage]
	name := cmp.Or(stage.Title, p.Stage, "Passes")
	if stage.Repeats {
		return fmt.Sprintf("%s · %s %d", name, s.words().Round, p.Round)
	}
	return name
}

// sum summarizes the passes of a group.
func (g *group) sum() {
	var ms int64
	cost, unknown, retries := 0.0, 0, 0
	for _, r := range g.Rows {
		ms += r.DurationMS
		cost += r.USD
		unknown += r.Unknown
		retries += max(0, r.Attempts-1)
	}
	parts := []string{plural(len(g.Rows), "pass"), seconds(ms), costText(cost, unknown)}
	if retries > 0 {
		parts = append(parts, plural(retries, "retry"))
	}
	g.Note = strings.Join(parts, " · ")
}
