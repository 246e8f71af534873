package conformance

import (
	"fmt"
	"strings"
	"time"
)

// pageWith returns a whole page with a text.
func pageWith(text string, width int) string {
	return fmt.Sprintf(doctype+
		"<html><head><style>main { max-width: %dpx }</style></head><body><main>%s</main></body></html>", width, text)
}

const (
	// halfPage is a page that breaks off.
	halfPage = doctype + "<html><head><title>x</title></head><body><main>It breaks off in the middle of"
	// observations is a report with all sections.
	observations = "## WHAT IS DEEPLY INTEGRATED\n- R1\n\n## WHAT IS SURFACE-LEVEL\n(none)\n\n## WHAT IS ABSENT\n- R2\n"
)

// texts are the replies of plays.
var texts = map[string]func(a *actor) string{
	"cut":      func(*actor) string { return pageWith("cut", 950) },
	"rest":     func(*actor) string { return pageWith("rest", 950) },
	"next":     func(*actor) string { return pageWith("next", 950) },
	"last":     func(*actor) string { return pageWith("last", 950) },
	"wide":     func(*actor) string { return pageWith("wide", 800) },
	"same":     func(a *actor) string { return fenced(a.prompt) },
	"ellipsis": func(*actor) string { return pageWith("ellipsis", 950) + "\n\nAnd so on..." },
	"quoting": func(*actor) string {
		return observations + "\nThe page begins with <html and ends nowhere, and so on..."
	},
	"cutall":    func(*actor) string { return halfPage },
	"nopage":    func(*actor) string { return "The page is fine as it is." },
	"sections":  func(*actor) string { return "The page was read, and nothing else needs to be said about it." },
	"critic":    func(*actor) string { return "PA-05: 1/4" },
	"auditor_A": func(*actor) string { return "Score: 2/4" },
	"auditor_B": func(*actor) string { return "Score: 3/4" },
	"auditor_C": func(*actor) string { return "Score: 4/4" },
	"weaver": func(a *actor) string {
		return []string{"**PA-05 Overall:** 4.3/4", "Last cycle PA-05: 1.5/4, now PA-05: 2.5/4",
			"**PA-05 Score:** 3.5/4"}[min(a.attempt, 3)-1]
	},
}

// fenced returns the page in a prompt or reply.
func fenced(prompt string) string {
	_, page, _ := strings.Cut(prompt, "```html\n")
	page, _, _ = strings.Cut(page, "\n```")
	return page
}

// failures are the plays that fail in their first attempts.
var failures = map[string]struct {
	attempts int
	do       func(a *actor) int
}{
	"crash": {1, func(a *actor) int {
		return a.exit(1, strings.Repeat("at the very start ", 600)+"Connection reset by peer")
	}},
	"counted":   {1, func(a *actor) int { return a.exit(1, "Input tokens: 429, output tokens: 12") }},
	"weary":     {6, func(a *actor) int { return a.exit(1, "not today") }},
	"exhausted": {3, func(a *actor) int { return a.exit(7, "out of breath") }},
	"hopeless":  {9, func(a *actor) int { return a.exit(1, "there is no hope for this one") }},
	"limited":   {4, (*actor).refuse},
	"cut": {2, func(a *actor) int {
		return a.say([]string{halfPage,
			"I changed all of it, and then..."}[a.attempt-1])
	}},
	"rest":     {1, func(a *actor) int { return a.say("I changed the head. <!-- rest") }},
	"slowpoke": {1, (*actor).tarry},
}

// exit ends with a code after a text on stderr.
func (a *actor) exit(code int, text string) int {
	fmt.Fprintln(a.err, text)
	return code
}

// say answers with a text.
func (a *actor) say(text string) int {
	return a.print(map[string]any{
		"type": "result", "subtype": "success", "is_error": false, "result": text, "total_cost_usd": 0.01,
		"usage": usage(1000, 200, 0, 0),
	})
}

// refuse replies as an overloaded provider, each time in another form.
func (a *actor) refuse() int {
	complain := func(text string) int {
		return a.print(map[string]any{"type": "result", "is_error": true, "result": text, "total_cost_usd": 0,
			"usage": usage(0, 0, 0, 0)})
	}
	switch a.attempt {
	case 1:
		return a.exit(1, "API Error: 429 {\"type\":\"error\"}")
	case 2:
		return complain("API Error: Overloaded")
	case 3:
		return a.exit(1, "Rate-limit reached, try again later")
	}
	return complain("We are at capacity.")
}

// tarry prints half of its answer, and the rest only after a minute.
func (a *actor) tarry() int {
	if code := a.write([]byte(`{"type":"result","result":"This is as far as`)); code != 0 {
		return code
	}
	time.Sleep(time.Minute)
	return 1
}
