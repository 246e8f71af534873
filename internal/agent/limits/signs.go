package limits

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// signs are what a report shows about the cause of an error.
type signs struct {
	codes     []string
	statuses  []int
	lines     []string // without the words before the message
	documents []map[string]any
	all       string
}

var (
	// status is how programs print the status of a refusal. A number alone is none.
	status = lazyregexp.New(`(?i)(?:^API Error: |^(?:API Error: )?Request rejected \(|` +
		`^(?:unexpected )?(?:HTTP|status)(?:/[\d.]+)?(?: code)?[ :]+|^exceeded retry limit, last status: |` +
		`^Attempt \d+ failed with status |^code: ?)([45]\d\d)\b`)
	// A line that only reports counts explains nothing: "Input tokens: 429".
	counts    = lazyregexp.New(`(?i)\b(tokens?|usage|context)\b`)
	complaint = lazyregexp.New(`(?i)limit|overloaded|exceed|error|fail|too many|retry|expired|invalid|login|resets`)
	// lead is what programs print before a message.
	lead = lazyregexp.New(`(?i)^(?:\[?\d{4}-\d\d-\d\d[T ][\d:.,]+Z?\]?\s+|` +
		`(?:Error when talking to Gemini API .*?|(?:stream |unexpected )?error|fatal|_?\w*(?:Quota|Api)Error|` +
		`codex error|claude|codex|gemini|exception TypeError): |error\s+|\[API Error: |` +
		`API Error: (?:\d{3} |Request rejected \(\d{3}\) · ))`)
	// quoted are signs that a line is code, a difference, the output of a test or a reference to a file.
	quoted = lazyregexp.New("^[-+<>|#\"'`*/@]|" +
		`(?i:\b(?:want(?:ed)?|got|expect(?:ed|s)?|assert\w*|actual|received)\b)|\bTest[A-Z_]\w*|` +
		`\b(?:FAIL|PASS|func|return|const|var|def)\b ?[({:"'A-Z]|\b(?:describe|it)\(|:=|[!=]=|=>|\+\+|--(?:\W|$)|\w--|` +
		`\.(?:go|py|ts|js|rs|java|rb|c|md|txt|json|yaml|log):\d`)
	// otherError is a line that reports the end of a program, whatever ended it.
	otherError = lazyregexp.New(`^(?:[^\s"]*Z? ?(?:Error|ERROR|error|FATAL|fatal|panic)\b|FAIL|--- FAIL|` +
		`make(?:\[\d+\])?: \*\*\*|exit status|npm ERR!|FAILED|AssertionError|Traceback|Caused by)`)
)

// addLine adds a line, unless it quotes something.
func (s *signs) addLine(line string, withStatus bool) {
	if quoted.MatchString(head(line)) || counts.MatchString(line) && !complaint.MatchString(line) {
		return
	}
	line, message := line, line
	for {
		short := lead.ReplaceAllString(message, "")
		if short == message {
			break
		}
		message = short
	}
	for _, text := range slices.Compact([]string{line, message}) {
		s.lines = append(s.lines, text)
		if m := status.FindStringSubmatch(text); m != nil && withStatus {
			if n, err := strconv.Atoi(m[1]); err == nil {
				s.statuses = append(s.statuses, n)
			}
		}
	}
}

// head returns a line without the JSON document in it.
func head(line string) string {
	before, _, _ := strings.Cut(line, "{")
	return before
}

// document is where a message continues with a JSON document.
var document = lazyregexp.New(
	`^(?i:(?:\[?API Error:(?: \d{3})?|codex error:|.*ApiError:|(?:stream )?error:)\s*)?\[?\{`)

// addDocument adds the error that a JSON document at the start of a text reports.
func (s *signs) addDocument(text string) {
	at := document.FindStringIndex(text)
	if at == nil {
		return
	}
	var doc map[string]any
	if json.NewDecoder(strings.NewReader(text[at[1]-1:])).Decode(&doc) != nil {
		return
	}
	failure, ok := doc["error"].(map[string]any)
	if !ok {
		return
	}
	s.documents = append(s.documents, doc)
	for _, value := range []any{failure["type"], failure["code"], failure["status"], doc["status_code"]} {
		switch v := value.(type) {
		case string:
			s.codes = append(s.codes, v)
		case float64:
			s.statuses = append(s.statuses, int(v))
		}
	}
	if message, ok := failure["message"].(string); ok {
		line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
		s.addLine(line, true)
		s.addDocument(message)
	}
}

// found is a matched rule, and what may contain the reset time.
type found struct {
	Limit
	document []map[string]any
	all      string
}

// match returns what the first matching rule recognizes.
func match(rules []rule, s signs) found {
	f := found{document: s.documents, all: s.all}
	coded := func(r rule) bool {
		return slices.ContainsFunc(s.codes, func(c string) bool { return c != "" && slices.Contains(r.codes, c) })
	}
	for _, r := range rules {
		if coded(r) {
			f.Kind = r.kind
		}
		if r.text != nil {
			if at := slices.IndexFunc(s.lines, r.text.MatchString); at >= 0 {
				f.Kind, f.Text = r.kind, s.lines[at]
			}
		}
		if f.Kind != "" {
			return f
		}
	}
	for _, r := range rules { // words tell more than the status: 429 is also a lack of credit
		if slices.ContainsFunc(s.statuses, func(n int) bool { return slices.Contains(r.http, n) }) {
			f.Kind = r.kind
			return f
		}
	}
	return f
}
