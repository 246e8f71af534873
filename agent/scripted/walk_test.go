package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const example = "../../examples/corpus"

// walker is the pipeline in small: it composes prompts in the fixed order, and keeps page and notes.
type walker struct {
	t          *testing.T
	page       string
	notes      map[string][]string
	lastReply  string
	references []labelled
	passes     int
	cost       float64
	costAt     []float64
	unchanged  []int
}

type labelled struct{ label, body string }

type set struct {
	id    string
	theme string
	files []labelled
}

func newWalker(t *testing.T) *walker {
	return &walker{t: t, page: load(t, "seed/page.html"), notes: map[string][]string{}}
}

func load(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(example, path))
	require.NoError(t, err)
	return string(data)
}

// sets reads the example's corpus in order, and its references.
func sets(t *testing.T, file string) (sets []set, references []labelled) {
	var root yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(load(t, file)), &root))
	top := root.Content[0]
	references = files(t, value(top, "always_read"))
	corpus := value(top, "corpus")
	for i := 0; i < len(corpus.Content); i += 2 {
		sets = append(sets, set{corpus.Content[i].Value, value(corpus.Content[i+1], "theme").Value, files(t, value(corpus.Content[i+1], "files"))})
	}
	return sets, references
}

func files(t *testing.T, n *yaml.Node) []labelled {
	var out []labelled
	for _, entry := range n.Content {
		out = append(out, labelled{entry.Content[0].Value, load(t, entry.Content[1].Value)})
	}
	return out
}

func value(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// ask runs the agent once.
func (w *walker) ask(sections ...string) string {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	prompt := strings.Join(sections, "\n\n---\n\n")
	require.Zero(w.t, Main(strings.NewReader(prompt), &stdout, &stderr, func(string) string { return "" }), stderr.String())
	var e envelope
	require.NoError(w.t, json.Unmarshal(stdout.Bytes(), &e))
	w.cost += e.CostUSD
	w.costAt = append(w.costAt, w.cost)
	w.lastReply = e.Result
	return e.Result
}

func (w *walker) fence() string { return "# The page\n\n```html\n" + w.page + "```" }

// pass is one of the eight of a set.
func (w *walker) pass(s set, n int) string {
	w.passes++
	role := map[int]string{2: "Verifier", 5: "Verifier", 8: "Verifier"}[n]
	if role == "" {
		role = "Builder"
	}
	rotation, shift, label := "A", 0, "Base ordering"
	if n > 3 {
		rotation, shift, label = "B", 2, "Mid files promoted"
	}
	if n > 6 {
		rotation, shift, label = "C", 4, "Last files promoted"
	}
	sections := []string{fmt.Sprintf("# DETERMINISTIC ORCHESTRATOR — [%s] Pass %d/8 — Rotation %s (%s) — %s — %s\n\nYou are the %s of pass %d of 56.",
		s.id, n, rotation, label, role, s.theme, strings.ToLower(role), w.passes)}
	for _, r := range w.references[:5] {
		sections = append(sections, "## "+r.label+"\n\n```\n"+r.body+"```")
	}
	for _, name := range []string{"CONVICTION_ADDITION", "DISCOVERY_LOG"} {
		if len(w.notes[name]) > 0 {
			sections = append(sections, "# "+name+"\n\n"+strings.Join(w.notes[name], "\n"))
		}
	}
	if n == 3 || n == 6 {
		sections = append(sections, "# Observations\n\n"+w.lastReply)
	}
	sections = append(sections, w.fence(), w.corpus(s, shift), w.references[5].body, load(w.t, "prompts/"+strings.ToLower(role)+".md"))
	reply := w.ask(sections...)
	if role == "Builder" {
		w.keepPage(reply)
	}
	w.keepNotes(reply, fmt.Sprintf("## Pass %d (%s, Rotation %s, %s)", w.passes, s.id, rotation, strings.ToLower(role)))
	return reply
}

func (w *walker) corpus(s set, shift int) string {
	var b strings.Builder
	for i := range s.files {
		file := s.files[(i+shift)%len(s.files)]
		primacy := ""
		if i == 0 {
			primacy = " (PRIMACY POSITION)"
		}
		fmt.Fprintf(&b, "## [%d/%d] %s%s\n\n%s\n", i+1, len(s.files), file.label, primacy, file.body)
	}
	return b.String()
}

func (w *walker) keepPage(reply string) {
	w.t.Helper()
	m := htmlFence.FindStringSubmatch(reply)
	require.NotNil(w.t, m, "no page in the reply of pass %d", w.passes)
	require.True(w.t, strings.HasSuffix(m[2], "</html>\n"))
	if m[2] == w.page {
		w.unchanged = append(w.unchanged, w.passes)
	}
	w.page = m[2]
}

func (w *walker) keepNotes(reply, heading string) {
	for _, name := range []string{"CONVICTION_ADDITION", "DISCOVERY_LOG"} {
		_, rest, begun := strings.Cut(reply, "<!-- "+name+"_START -->\n")
		text, _, ended := strings.Cut(rest, "\n<!-- "+name+"_END -->")
		if begun && ended {
			w.notes[name] = append(w.notes[name], heading+"\n"+text+"\n")
		}
	}
}

// cycle is one look at the page, by its source. It returns the weaver's report.
func (w *walker) cycle(n int) string {
	head := func(who string) string {
		return fmt.Sprintf("# DETERMINISTIC ORCHESTRATOR — PA cycle %d/6 — %s", n, who)
	}
	var reports []string
	for _, letter := range []string{"A", "B", "C"} {
		reports = append(reports, "## auditor-"+letter+"\n\n"+w.ask(head("Auditor "+letter), w.fence(), load(w.t, "prompts/auditor.md")))
	}
	synthesis := w.ask(append([]string{head("Weaver")}, append(reports, load(w.t, "prompts/weaver.md"))...)...)
	if !strings.HasSuffix(synthesis, "PA-05: 3.5/4\n") {
		w.keepPage(w.ask(head("Refine"), synthesis, w.fence(), load(w.t, "prompts/refine.md")))
	}
	return synthesis
}

// depth counts the list items under the first three headings of a verifier's report.
func depth(reply string) string {
	var counts []string
	for _, heading := range []string{deep, surface, absent} {
		_, rest, _ := strings.Cut(reply, "## "+heading+"\n")
		section, _, _ := strings.Cut(rest, "\n## ")
		counts = append(counts, fmt.Sprint(strings.Count("\n"+section, "\n- ")))
	}
	return strings.Join(counts, "/")
}

func TestTheWholePipeline(t *testing.T) {
	all, references := sets(t, "pipeline.yaml")
	require.Len(t, all, 7)
	w := newWalker(t)
	w.references = references
	for _, s := range all {
		require.Len(t, s.files, 5)
		var seen []string
		for n := 1; n <= 8; n++ {
			reply := w.pass(s, n)
			if n == 2 || n == 5 || n == 8 {
				seen = append(seen, depth(reply))
				require.Greater(t, len(reply), 500, "the check minimum-length")
				require.NotContains(t, reply, "<html")
			}
		}
		require.Equal(t, []string{"0/3/2", "3/2/0", "5/0/0"}, seen, s.id)
	}
	require.Equal(t, []int{15, 31}, w.unchanged)
	require.Len(t, w.notes["CONVICTION_ADDITION"], 56)
	require.Len(t, w.notes["DISCOVERY_LOG"], 55)
	require.Equal(t, 35, strings.Count(w.page, "<li data-src="))
	corpus := w.cost
	var scores []string
	for n := 1; n <= 3; n++ {
		lines := strings.Split(strings.TrimSpace(w.cycle(n)), "\n")
		scores = append(scores, lines[len(lines)-1])
	}
	require.Equal(t, []string{"PA-05: 2.5/4", "PA-05: 3.0/4", "PA-05: 3.5/4"}, scores)
	t.Logf("corpus $%.4f, total $%.4f, page %d bytes", corpus, w.cost, len(w.page))
	require.Contains(t, w.page, `data-polish="2"`)
	requireBudgets(t, w.costAt)
}

// requireBudgets: the example's budget of 6 warns late and never pauses; one of 3 pauses in the middle.
func requireBudgets(t *testing.T, costAt []float64) {
	crossed := func(usd float64) int {
		for i, cost := range costAt {
			if cost >= usd {
				return i + 1
			}
		}
		return 0
	}
	t.Logf("calls: $3 at %d, $4.80 at %d, $6 at %d", crossed(3), crossed(4.8), crossed(6))
	require.Zero(t, crossed(6))
	require.Greater(t, crossed(4.8), 45)
	require.Greater(t, crossed(3), 25)
	require.Less(t, crossed(3), 45)
}
