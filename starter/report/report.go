// Package report makes one page of a run: how it stands, what it did, cost, made and was asked, with charts and pictures. The page is one HTML
// file that needs nothing but itself: no network, no script. It is made of the run directory alone, and judges nothing. What a run directory
// says is text on the page, never markup.
package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/passbook-run/passbook/rundir"
)

// Options say what the page is made with.
type Options struct {
	Next     []string // commands to type next
	Pictures int64    // at most so many bytes of pictures; 0: DefaultPictures; negative: none
	Diffs    int      // at most so many lines of differences; 0: DefaultDiffs
	Rows     int      // at most so many rows of passes; 0: DefaultRows
}

// Mark is at the beginning of every page, so that a page is told from other files.
const Mark = `<meta name="generator" content="Passbook">`

// Limits of a page. What is left out is counted on the page.
const (
	DefaultPictures = 16 << 20
	DefaultDiffs    = 20_000
	DefaultRows     = 1000
)

func (o Options) filled() Options {
	o.Pictures, o.Diffs, o.Rows = cmp.Or(o.Pictures, DefaultPictures), cmp.Or(o.Diffs, DefaultDiffs), cmp.Or(o.Rows, DefaultRows)
	return o
}

// Write writes the page of a run. Files that are missing or damaged are left out and named on the page; without a readable journal there is none.
func Write(to io.Writer, d rundir.Dir, o Options) error {
	v, err := read(d, o.filled())
	if err != nil {
		return fmt.Errorf("report of %s: %w", d.Root, err)
	}
	return pages.ExecuteTemplate(to, "report", v)
}

//go:embed page.html
var pageSource string

//go:embed parts.html
var partsSource string

//go:embed page.css
var styleSource string

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"usd": usd, "seconds": seconds, "clock": clock, "short": short, "tenths": tenths, "style": func() template.CSS { return template.CSS(styleSource) },
}).Parse(partsSource + pageSource + compareSource))
