package markdown_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/markdown"
)

func TestHTML(t *testing.T) {
	for name, row := range map[string]struct{ text, html string }{
		"headings are below those of the page": {"# One\n\n### Three", "<h4>One</h4>\n<h6>Three</h6>\n"},
		"lines stay":                           {"a\nb", "<p>a<br>\nb</p>\n"},
		"code":                                 {"```go\nif a < b {\n```", "<pre><code>if a &lt; b {\n</code></pre>\n"},
		"a list":                               {"3. x\n4. **y**", "<ol start=\"3\">\n<li>x</li>\n<li><strong>y</strong></li>\n</ol>\n"},
		"a checklist":                          {"- [x] done", "<ul>\n<li>[x] done</li>\n</ul>\n"},
		"a table":                              {"| a |\n|---|\n| b |", "<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>b</td>\n</tr>\n</tbody>\n</table>\n"},
		"a link":                               {"[x](https://example.com/a)", "<p><a href=\"https://example.com/a\" rel=\"nofollow noreferrer\">x</a></p>\n"},

		"HTML is text":               {"a <b onclick=x>c</b>", "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>\n"},
		"a block of HTML is text":    {"<script>\nx()\n</script>\n\nb", "<pre><code>&lt;script&gt;\nx()\n&lt;/script&gt;\n</code></pre>\n<p>b</p>\n"},
		"a comment is text":          {"<!-- x -->", "<pre><code>&lt;!-- x --&gt;</code></pre>\n"},
		"pictures are not loaded":    {"![x](https://example.com/p.png)", "<p></p>\n"},
		"scripts in links":           {"[x](javascript:alert(1))", "<p>x</p>\n"},
		"scripts in links, encoded":  {"[x](java&#115;cript:alert(1))", "<p>x</p>\n"},
		"data in links":              {"[x](data:text/html,x)", "<p>x</p>\n"},
		"attributes from a language": {"```\" onclick=\"x\ny\n```", "<pre><code>y\n</code></pre>\n"},
		"entities":                   {"&lt;script&gt;", "<p>&lt;script&gt;</p>\n"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.html, string(markdown.HTML(row.text))) })
	}
}

// FuzzHTML: no text becomes an element that can act or load.
func FuzzHTML(f *testing.F) {
	for _, text := range []string{"<img src=x onerror=y>", "[a]: javascript:x\n[b][a]", "<a href='x'", "`<`", "<![CDATA[<script>]]>", "<svg/onload=x>"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		html := strings.ToLower(string(markdown.HTML(text)))
		for _, bad := range []string{"<script", "<img", "<svg", "<iframe", "<style", "<input", `href="javascript`, `href="data`} {
			require.NotContains(t, html, bad)
		}
	})
}

func TestTextIsNotHidden(t *testing.T) {
	for name, text := range map[string]string{
		"nothing else":    "```json\n{}\n```",
		"another block":   "See:\n\n```go\nx := 1\n```",
		"no JSON":         "See:\n\n```json\n{...}\n```",
		"text follows it": "```json\n{}\n```\nDone.",
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, text, markdown.WithoutBlock(text)) })
	}
}
