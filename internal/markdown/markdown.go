// Package markdown renders texts of agents and people as HTML. What they write is data: HTML in it is shown as text,
// nothing is loaded from elsewhere, and links are those of the web and of mail.
package markdown

import (
	"bytes"
	"encoding/json"
	"html/template"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// highest is the level of the highest heading of a text: below those of the page.
const highest = 4

var engine = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(below{}, 100))),
		goldmark.WithRendererOptions(html.WithHardWraps()))
})

// policy has the elements that the engine writes, but pictures.
var policy = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li",
		"table", "thead", "tbody", "tr", "th", "td", "h4", "h5", "h6")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
})

// HTML renders a text.
func HTML(source string) template.HTML {
	var out bytes.Buffer
	if err := engine().Convert([]byte(source), &out); err != nil {
		return template.HTML("<pre>" + template.HTMLEscapeString(source) + "</pre>")
	}
	return template.HTML(policy().SanitizeBytes(out.Bytes()))
}

// below lowers headings, and shows HTML as text.
type below struct{}

func (below) Transform(doc *ast.Document, r text.Reader, _ parser.Context) {
	var raw []ast.Node
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Heading:
			if entering {
				n.Level = min(6, n.Level+highest-1)
			}
		case *ast.HTMLBlock, *ast.RawHTML:
			if entering {
				raw = append(raw, n)
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		panic(err) // the function returns none
	}
	for _, n := range raw {
		replace(n, r.Source())
	}
}

// replace puts the source of an element of HTML in its place.
func replace(n ast.Node, source []byte) {
	var with ast.Node
	switch n := n.(type) {
	case *ast.RawHTML:
		with = ast.NewString(n.Segments.Value(source))
	case *ast.HTMLBlock:
		block := ast.NewCodeBlock()
		lines := n.Lines()
		if n.HasClosure() {
			lines.Append(n.ClosureLine)
		}
		block.SetLines(lines)
		with = block
	}
	n.Parent().ReplaceChild(n.Parent(), n, with)
}

// WithoutBlock returns a text without the fenced block of JSON at its end, which is for programs, unless there is
// nothing else.
func WithoutBlock(text string) string {
	at := strings.LastIndex(text, "```json\n")
	if at < 0 {
		return text
	}
	words := strings.TrimSpace(text[:at])
	block, closed := strings.CutSuffix(text[at+len("```json\n"):], "```")
	if words == "" || !closed || !json.Valid([]byte(block)) {
		return text
	}
	return words
}
