// Package report writes one HTML page about a run: status, work, costs, results and questions, with charts and
// pictures. The page is self-contained: no network, no script. It is made from the run directory alone, and judges
// nothing. Text from a run directory is shown as text, never as markup.
package report

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"sync"
	"time"

	"github.com/passbook-run/passbook/internal/markdown"
	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/rundir"
)

// Options configure the page.
type Options struct {
	Next     []string  // next commands
	Pictures int64     // maximum bytes of pictures; 0: DefaultPictures; negative: none
	Diffs    int       // maximum lines of differences; 0: DefaultDiffs
	Texts    int       // maximum bytes of prompts and replies; 0: DefaultTexts
	Rows     int       // maximum rows of passes; 0: DefaultRows
	Contents Contents  // of the workspace's files; nil: they cannot be read
	Now      time.Time // until which the time of a live run is counted; zero: its last event
}

// Mark is at the start of every page, to identify pages of Passbook.
const Mark = `<meta name="generator" content="Passbook">`

// Limits of a page. Omitted parts are counted on the page.
const (
	DefaultPictures = 16 << 20
	DefaultDiffs    = 20_000
	DefaultTexts    = 4 << 20
	DefaultRows     = 1000
)

func (o Options) filled() Options {
	o.Pictures, o.Diffs = cmp.Or(o.Pictures, DefaultPictures), cmp.Or(o.Diffs, DefaultDiffs)
	o.Texts = cmp.Or(o.Texts, DefaultTexts)
	o.Rows = cmp.Or(o.Rows, DefaultRows)
	return o
}

// Write writes the page of a run. Missing or damaged files are left out and listed on the page. An unreadable journal
// is an error.
func Write(to io.Writer, d rundir.Dir, o Options) error {
	v, err := read(d, o.filled())
	if err != nil {
		return fmt.Errorf("report of %s: %w", d.Root, err)
	}
	return execute(to, "report", v)
}

// Page is the content of the page of a run.
type Page = page

// Group is a round of a stage, with its passes.
type Group = group

// Decision is a question with its place and its answer.
type Decision = decision

// Read returns the content of the page, for pages that show parts of it.
func Read(d rundir.Dir, o Options) (*Page, error) { return read(d, o.filled()) }

// Fragments returns a copy of the templates "facts", "lanes", "chart", "shot" and "difference" with their functions.
func Fragments() (*template.Template, error) { return pages().Clone() }

// Style returns the style sheet of the pages.
func Style() string { return styleSource }

// execute writes a page. Text of agents and of foreign files can contain characters that change the order in which a
// browser shows the text around them; they are shown as codes, as in a terminal.
func execute(to io.Writer, name string, v any) error {
	safe := terminal.NewWriter(to)
	return errors.Join(pages().ExecuteTemplate(safe, name, v), safe.Flush())
}

//go:embed page.html
var pageSource string

//go:embed parts.html
var partsSource string

//go:embed page.css
var styleSource string

var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"usd": usd, "cost": costText, "seconds": seconds, "clock": clock, "short": short,
		"title": view.Title, "lanes": view.LaneTotals, "tenths": tenths,
		"markdown": markdown.HTML,
		"style":    func() template.CSS { return template.CSS(styleSource) },
	}).Parse(partsSource + pageSource))
})
