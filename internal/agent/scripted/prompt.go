package scripted

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// call is what a prompt asks for. It is read tolerantly: headings and fences count, the sections' order does not.
type call struct {
	role     string // builder, verifier, auditor, weaver, refine, or another word of the description
	letter   string // of an auditor: "B"
	set      string // "S5"
	number   int    // of the pass in the run, from 1; 0 in a repeated stage
	round    int    // of a repeated stage
	files    []source
	page     *page
	seen     string // everything outside the page: replies of other steps are found here by their headings
	pictures []string
}

// source is one corpus file.
type source struct{ label, insight string }

var (
	headline   = lazyregexp.New(`(?m)^# (?:DETERMINISTIC ORCHESTRATOR|This call)\b.*$`)
	passLine   = lazyregexp.New(`(?m)^Pass: (\d+)`)
	roundLine  = lazyregexp.New(`(?m)^Round: (\d+)`)
	roleLine   = lazyregexp.New(`(?m)^Role: (.+)$`)
	setLine    = lazyregexp.New(`(?m)^Set: (\S+)`)
	knownRole  = lazyregexp.New(`(?i)\b(builder|verifier|auditor|weaver|refine)\b(?:[ -]+([A-Z])\b)?`)
	fileHead   = lazyregexp.New(`(?m)^## \[\d+/\d+\] (.+?)(?: \(PRIMACY POSITION\))?\s*$`)
	insight    = lazyregexp.New(`(?m)^insight:\s*(.+?)\s*$`)
	sectionEnd = lazyregexp.New(`(?m)^---\s*$`)
	htmlFence  = lazyregexp.New("(?ms)^(`{3,})html[^\n]*\n(.*?)^`{3,}\\s*$")
	picture    = lazyregexp.New(`[\w./~-]+\.png`)
	notName    = lazyregexp.New(`[^\p{L}\p{N}]+`)
)

func parse(prompt string) call {
	c := call{seen: prompt, pictures: picture.FindAllString(prompt, -1)}
	for _, fence := range htmlFence.FindAllStringSubmatchIndex(prompt, -1) {
		if text := prompt[fence[4]:fence[5]]; strings.Contains(text, "</html>") {
			c.page, c.seen = readPage(text), prompt[:fence[0]]+prompt[fence[1]:]
			break
		}
	}
	c.describe(context(prompt))
	c.files = readFiles(c.seen)
	return c
}

// context returns the section that describes the call: from its heading to the next rule.
func context(prompt string) string {
	at := headline.FindStringIndex(prompt)
	if at == nil {
		return ""
	}
	return sectionEnd.Split(prompt[at[1]:], 2)[0]
}

// describe reads the lines of the context section.
func (c *call) describe(context string) {
	c.number = number(first(passLine, context))
	c.round = max(1, number(first(roundLine, context)))
	c.set = first(setLine, context)
	role := first(roleLine, context)
	if m := knownRole.FindStringSubmatch(role); m != nil {
		c.role, c.letter = strings.ToLower(m[1]), strings.ToUpper(m[2])
		return
	}
	c.role = strings.Trim(notName.ReplaceAllString(strings.ToLower(role), "-"), "-")
}

// at is the call's name in fault files and call logs: "035", "auditor-B-1", "weaver-2".
func (c call) at() string {
	switch {
	case c.number > 0:
		return fmt.Sprintf("%03d", c.number)
	case c.letter != "":
		return fmt.Sprintf("%s-%s-%d", c.role, c.letter, c.round)
	}
	return fmt.Sprintf("%s-%d", c.role, c.round)
}

func readFiles(text string) []source {
	var files []source
	heads := fileHead.FindAllStringSubmatchIndex(text, -1)
	for i, head := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		body := sectionEnd.Split(text[head[1]:end], 2)[0]
		files = append(files, source{label: text[head[2]:head[3]], insight: first(insight, body)})
	}
	return files
}

// listed are the labels of the list items under a heading of an earlier reply.
func (c call) listed(heading string) []string {
	begin := regexp.MustCompile(`(?m)^#+ ` + regexp.QuoteMeta(heading) + `\s*$`).FindStringIndex(c.seen)
	if begin == nil {
		return nil
	}
	var labels []string
	for line := range strings.Lines(strings.TrimLeft(c.seen[begin[1]:], "\n")) {
		label, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), ":")
		if !strings.HasPrefix(line, "- ") || !ok {
			break
		}
		labels = append(labels, label)
	}
	return labels
}

func first(r lazyregexp.Regexp, text string) string {
	if m := r.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
