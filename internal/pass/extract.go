package pass

import (
	"bytes"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

var (
	fenceOpen = lazyregexp.New("(?im)^[ \t]*(`{3,})html[^\n`]*\n")
	doctype   = lazyregexp.New(`(?is)<!DOCTYPE\s+html.*?</html\s*>`)
	htmlRoot  = lazyregexp.New(`(?is)<html\b.*?</html\s*>`)
	htmlStart = lazyregexp.New(`(?i)<!DOCTYPE\s+html|<html\b`)
	htmlEnd   = lazyregexp.New(`(?i)</html\s*>`)
	bodyEnd   = lazyregexp.New(`(?i)</body\s*>`)
)

// extract returns the page in a reply: from an html fence that contains its end; else from <!DOCTYPE html to
// </html>; else from <html to </html>; else "". A code sample in the page may end the fence early; the next
// pattern then matches the whole page.
func extract(reply string) string {
	for rest := reply; ; {
		body, after, found := nextFence(rest)
		if !found {
			break
		}
		if ends := htmlEnd.FindAllStringIndex(body, -1); ends != nil {
			return body[:ends[len(ends)-1][1]]
		}
		rest = after
	}
	for _, rung := range []lazyregexp.Regexp{doctype, htmlRoot} {
		if page := bestPage(rung.FindAllString(reply, -1)); page != "" {
			return page
		}
	}
	return ""
}

// nextFence returns the body of the next html fence, and the text after its opening line.
func nextFence(text string) (body, after string, found bool) {
	open := fenceOpen.FindStringSubmatchIndex(text)
	if open == nil {
		return "", "", false
	}
	after = text[open[1]:]
	mark := text[open[2]:open[3]]
	for at := 0; at < len(after); {
		line, _, _ := strings.Cut(after[at:], "\n")
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), mark) {
			return after[:at], after, true
		}
		at += len(line) + 1
	}
	return after, after, true // never closed: the end of the page decides
}

// bestPage prefers a page with a body to a mention of the two tags in a sentence.
func bestPage(pages []string) string {
	for _, p := range pages {
		if bodyEnd.MatchString(p) {
			return p
		}
	}
	if len(pages) == 0 {
		return ""
	}
	return pages[0]
}

// isTruncated reports whether a text without a complete page ends in the middle of one.
func isTruncated(text string) bool {
	trimmed := strings.TrimSpace(text)
	return isTruncatedHTML(trimmed) || strings.HasSuffix(trimmed, "...") || strings.HasSuffix(trimmed, "<!-- rest")
}

// isTruncatedHTML reports whether a page begins in text and does not end.
func isTruncatedHTML(text string) bool {
	start := htmlStart.FindStringIndex(text)
	return start != nil && !htmlEnd.MatchString(text[start[0]:])
}

// Stored returns the stored form of an artifact: trimmed, with one newline.
func Stored(artifact string) []byte {
	return []byte(strings.TrimSpace(artifact) + "\n")
}

// modified compares two artifacts, ignoring white space around them.
func modified(before, after []byte) bool {
	return !bytes.Equal(bytes.TrimSpace(before), bytes.TrimSpace(after))
}
