package scripted

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// request is how a fault wants the reply to differ; the zero value is the honest reply.
type request struct {
	noHTML, noSections, noMarkers bool
	width                         int // of the page's container, 0 for the right one
	slow                          time.Duration
}

// Sections of a verifier's report, in order.
const (
	deep      = "WHAT IS DEEPLY INTEGRATED"
	surface   = "WHAT IS SURFACE-LEVEL"
	absent    = "WHAT IS ABSENT"
	surprised = "WHAT SURPRISED ME"
	attend    = "WHAT THE NEXT BUILDER SHOULD ATTEND TO"
)

var errNoPage = errors.New("the prompt holds no page: a fenced html block with " + listOpen + " is needed")

func (c call) reply(r request) (string, error) {
	switch c.role {
	case "builder":
		return c.build(r)
	case "verifier":
		return c.verify(r)
	case "auditor":
		return c.audit()
	case "weaver":
		return c.weigh(), nil
	case "refine":
		return c.refine(r)
	case "worker":
		return c.work(r)
	}
	return fmt.Sprintf("# Report\n\nThe scripted agent has no part for %q in its book and nothing to add.\n", c.role),
		nil
}

// build weaves sources in: what the observations miss most, or else the first three files as they are read.
func (c call) build(r request) (string, error) {
	if c.page == nil {
		return "", errNoPage
	}
	var changed []string
	for _, s := range c.chosen() {
		if c.page.weave(s, c.cap()) {
			changed = append(changed, s.label)
		}
	}
	return c.page.reply(r) + c.notes(r, changed), nil
}

func (c call) chosen() []source {
	for _, heading := range []string{absent, surface} {
		if labels := c.listed(heading); len(labels) > 0 {
			return slices.DeleteFunc(slices.Clone(c.files),
				func(s source) bool { return !slices.Contains(labels, s.label) })
		}
	}
	return c.files[:min(3, len(c.files))]
}

// cap is how deep a source can go. Two sets are done early, so their seventh pass has nothing to change.
func (c call) cap() int {
	if c.set == "S2" || c.set == "S4" {
		return 2
	}
	return 3
}

// reply is the page as a builder hands it over.
func (p *page) reply(r request) string {
	if r.noHTML {
		return "The page is fine as it is.\n"
	}
	width := pageWidth
	if r.width > 0 {
		width = r.width
	}
	return "```html\n" + p.text(width) + "\n```\n"
}

// verify reports how deep each file is woven in.
func (c call) verify(r request) (string, error) {
	if c.page == nil {
		return "", errNoPage
	}
	found := map[string][]string{}
	for _, s := range c.files {
		switch depth := c.page.depth(s.label); {
		case depth >= 2:
			found[deep] = append(found[deep], fmt.Sprintf("- %s: carries the page, depth %d", s.label, depth))
		case depth == 1:
			found[surface] = append(found[surface], fmt.Sprintf("- %s: named once, nothing builds on it yet", s.label))
		default:
			found[absent] = append(found[absent], fmt.Sprintf("- %s: not to be found", s.label))
		}
	}
	found[surprised] = []string{fmt.Sprintf("- %d cards, and the page still reads in one go", len(c.page.woven))}
	found[attend] = []string{"- What is absent first, then what is only named"}
	if r.noSections {
		return "The page was read from top to bottom and nothing else needs to be said about it here.\n", nil
	}
	var b strings.Builder
	for _, heading := range []string{deep, surface, absent, surprised, attend} {
		fmt.Fprintf(&b, "## %s\n%s\n\n", heading, strings.Join(orNone(found[heading]), "\n"))
	}
	return b.String() + c.notes(r, nil), nil
}

func orNone(lines []string) []string {
	if len(lines) == 0 {
		return []string{"(none)"}
	}
	return lines
}

// notes are the two marked blocks. Pass 35 forgets the second, as the example log of requirement 002 §2.2 has it.
func (c call) notes(r request, changed []string) string {
	if r.noMarkers {
		return ""
	}
	conviction := fmt.Sprintf("%s went deeper. Keep the rest.", strings.Join(changed, ", "))
	switch {
	case c.role == "verifier":
		conviction = "Read with fresh eyes. What is there holds."
	case len(changed) == 0:
		conviction = "Nothing is left to deepen. The page is done."
	}
	blocks := marked("CONVICTION_ADDITION", conviction)
	if c.number != 35 {
		blocks += marked("DISCOVERY_LOG",
			fmt.Sprintf("- %d cards\n- %s read first\n- order matters", len(c.page.woven), c.firstLabel()))
	}
	return blocks
}

func (c call) firstLabel() string {
	if len(c.files) == 0 {
		return "nothing"
	}
	return c.files[0].label
}

func marked(name, text string) string {
	return fmt.Sprintf("\n<!-- %s_START -->\n%s\n<!-- %s_END -->\n", name, text, name)
}
