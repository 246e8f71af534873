package scripted

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// page is the artifact, taken apart where the agent changes it. Everything else stays as it is, byte for byte.
type page struct {
	before, after string // around the woven list's items
	woven         []item
	polish        int
}

// item is one card: how deep a source is woven in, from 1 to 3.
type item struct {
	label, text string
	depth       int
}

const listOpen, listClose = `<ul class="woven">`, `</ul>`

var (
	itemTag   = lazyregexp.New(`<li data-src="([^"]+)" data-depth="(\d)">(.*?)</li>`)
	polishTag = lazyregexp.New(`(<main data-polish=")(\d+)(")`)
	widthRule = lazyregexp.New(`(main\s*\{[^}]*?max-width:\s*)\d+px`)
)

// pageWidth is what a builder sets the container to.
const pageWidth = 950

// readPage returns nil when there is no woven list to work on.
func readPage(text string) *page {
	text = strings.TrimRight(text, " \t\r\n")
	before, rest, opened := strings.Cut(text, listOpen)
	list, after, closed := strings.Cut(rest, listClose)
	if !opened || !closed {
		return nil
	}
	p := &page{before: before + listOpen, after: listClose + after}
	for _, m := range itemTag.FindAllStringSubmatch(list, -1) {
		p.woven = append(p.woven, item{label: html.UnescapeString(m[1]), depth: number(m[2]), text: m[3]})
	}
	if m := polishTag.FindStringSubmatch(text); m != nil {
		p.polish = number(m[2])
	}
	return p
}

// text is the page again, its container as wide as asked.
func (p *page) text(width int) string {
	var list strings.Builder
	for _, it := range p.woven {
		fmt.Fprintf(&list, "\n<li data-src=\"%s\" data-depth=\"%d\">%s</li>", html.EscapeString(it.label), it.depth,
			it.text)
	}
	if len(p.woven) > 0 {
		list.WriteString("\n")
	}
	whole := p.before + list.String() + p.after
	whole = polishTag.ReplaceAllString(whole, fmt.Sprintf("${1}%d${3}", p.polish))
	return widthRule.ReplaceAllString(whole, fmt.Sprintf("${1}%dpx", width))
}

func (p *page) depth(label string) int {
	if i := p.find(label); i >= 0 {
		return p.woven[i].depth
	}
	return 0
}

// weave integrates a source one level deeper, up to the cap, and reports whether that changed the page.
func (p *page) weave(s source, cap int) bool {
	i := p.find(s.label)
	switch {
	case i < 0:
		p.woven = append(p.woven, item{label: s.label, text: html.EscapeString(s.insight), depth: 1})
	case p.woven[i].depth < cap:
		p.woven[i].depth++
	default:
		return false
	}
	return true
}

func (p *page) find(label string) int {
	return slices.IndexFunc(p.woven, func(it item) bool { return it.label == label })
}
