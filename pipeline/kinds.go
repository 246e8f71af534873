package pipeline

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/run"
)

// kind is a kind of texts that keys have.
type kind struct {
	pattern lazyregexp.Regexp  // that texts fit
	check   func(string) error // more than a pattern can express
	says    string             // message about another text, instead of that of check
	wants   string             // what to write instead of another type; empty: a text
	schema  string             // more members of its JSON Schema, for editors
	scalar  bool               // also what YAML reads as another type
}

const blank = "is blank; write a text or leave the key out"

// kinds are the kinds of texts, by the names that tags have.
var kinds = map[string]kind{
	"text": {pattern: lazyregexp.New(`\S`), check: checkText, says: blank},
	"label": {pattern: lazyregexp.New(`^[^\r\n]*\S[^\r\n]*$`), check: checkLabel,
		says: "cannot be a label; write one line of at most 200 characters", schema: `"maxLength": 200`},
	"name": {pattern: nameShape, says: nameAdvice},
	"file": {pattern: nameShape, check: checkFileName, schema: `"not": {"enum": ["events.jsonl", "meta.json", "traces.jsonl",
		"provenance.jsonl", "spend.jsonl", "state.json", "pipeline.yaml", "plan.json"]}`},
	"path": {pattern: lazyregexp.New(`\S`), check: checkLocalPath,
		schema: `"not": {"pattern": "^(?:/|[A-Za-z]:|\\.\\.(?:/|$))|[\\\\\\x00\\r\\n]"}`},
	"tree-path": {pattern: lazyregexp.New(`\S`), check: CheckPath,
		schema: `"not": {"pattern": "^(?:/|!|[A-Za-z]:)|(?:^|/)\\.\\.(?:/|$)|[\\x00\\r\\n]"}`},
	"marker": {pattern: lazyregexp.New(`^[A-Z][A-Z0-9_]*$`),
		says: "is not a marker; write capitals, digits and underscores, such as DISCOVERY_LOG"},
	"variable": {pattern: lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`),
		says: "is not the name of an environment variable; write its name only, such as API_KEY"},
	"account": {pattern: lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`),
		says: "is not the name of an account; use letters, digits, dots, dashes, underscores and @, at most 64"},
	"id": {pattern: lazyregexp.New(`^[A-Za-z][A-Za-z0-9_]*$`), check: checkID, schema: `"not": {"enum": ["last"]}`,
		says: "cannot name the output of a step; begin with a letter, then letters, digits or underscores, and not last"},
	"address": {pattern: addressShape, check: checkHost, schema: `"not": {"enum": ["host", "none", "open"]}`, says: "is not an address; " +
		"write HOST, HOST:PORT or *.DOMAIN, such as api.example.com:443, with a port up to 65535"},
	"branch": {check: checkBranch, says: "is not a name of a git branch; write one such as passbook/work"},
	"web-address": {pattern: lazyregexp.New(`^https?://[^/]`), check: checkAddress,
		says: "is not a web address; write one such as https://example.org/hook, or webhook_env: NAME if it is a secret"},
	"find":  {pattern: lazyregexp.New(`\(`), check: checkExpression},
	"usage": {check: checkUsage},
	"wait": {check: checkDuration, wants: "a duration with its unit, such as 5s, 10m or 1h30m",
		pattern: lazyregexp.New(`^\+?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$`),
		schema:  `"allOf": [{"pattern": "[1-9]"}], "examples": ["10m", "5s", "1h30m"]`},
	"size": {check: checkSize, wants: "a size with its unit, such as 500KB, 32MB or 2GB",
		pattern: lazyregexp.New(`^[1-9][0-9]{0,5}(?:\.[0-9]+)? ?[KMG]i?B$`), schema: `"examples": ["32MB", "500KB", "2GB", "64MiB"]`},
	"share": {check: checkShare, says: "is not 0, or a share of the files below one, such as 2/5", scalar: true,
		pattern: lazyregexp.New(`^(?:0|[0-9]{1,4}/0{0,3}[1-9][0-9]{0,3})$`)},
	"picture": {pattern: lazyregexp.New(`^([1-9][0-9]{1,3})x([1-9][0-9]{1,3})$`),
		says: "is not a size; write width x height in pixels, such as 1440x900"},
}

// fits checks a text.
func (k kind) fits(s string) error {
	err := error(nil)
	if k.check != nil {
		err = k.check(s)
	} else if k.pattern != nil && !k.pattern.MatchString(s) {
		err = errors.New(k.says)
	}
	if err != nil && k.says != "" {
		return errors.New(k.says)
	}
	return err
}

// Scripted is the first word of an agent's command that selects the built-in offline agent.
const Scripted = "scripted"

// nameShape is the syntax of everything that becomes part of a file name or an ID.
var nameShape = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?$`)

const nameAdvice = "cannot be a name; use letters, digits, dots, dashes and underscores, at most 64"

func failed(when bool, what string) error {
	if when {
		return errors.New(what)
	}
	return nil
}

func checkShare(s string) error {
	_, _, ok := parseShare(s)
	return failed(!ok, "is not a share")
}

func checkText(s string) error { return failed(strings.TrimSpace(s) == "", blank) }

func checkID(s string) error { return failed(s == "last" || !idShape.MatchString(s), "is not an id") }

var addressShape = lazyregexp.New(`^((\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:.]+\])` +
	`(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$`)

// checkHost checks what a call may reach. The words are networks, which are not written in a list.
func checkHost(s string) error {
	return failed(slices.Contains([]string{"host", "none", "open"}, s) || !addressShape.MatchString(s), "is not an address")
}

// checkLabel checks a text for display.
func checkLabel(s string) error {
	return failed(strings.TrimSpace(s) == "" || len(s) > 200 || strings.ContainsAny(s, "\r\n"),
		"cannot be a label; write one line of at most 200 characters")
}

var drive = lazyregexp.New(`^[A-Za-z]:`)

// checkLocalPath checks, without reading the file system, that a path is inside the definition's folder.
func checkLocalPath(p string) error {
	clean := path.Clean(p)
	switch {
	case strings.TrimSpace(p) == "":
		return errors.New("is blank; write a text or leave the key out")
	case strings.ContainsAny(p, "\\\x00\r\n"):
		return errors.New("is not a path with forward slashes; write one")
	case path.IsAbs(p) || drive.MatchString(p):
		return errors.New("is an absolute path; write it relative to the folder of this file")
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return errors.New("is outside the folder of this file; move what it names into the folder")
	}
	return nil
}

// checkFileName checks that a name has no folders and is not reserved in the run directory.
func checkFileName(s string) error {
	if slices.Contains(run.Reserved, strings.ToLower(s)) {
		return errors.New("is a file that the run directory keeps for itself; choose another name")
	}
	return failed(!nameShape.MatchString(s), nameAdvice)
}

func checkDuration(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("is not a duration; write one such as 5s, 10m or 1h30m")
	}
	return failed(v <= 0, "is not above zero; write a duration such as 5s, 10m or 1h30m")
}

// checkExpression checks a regular expression with one group.
func checkExpression(s string) error {
	re, err := regexp.Compile(s)
	switch {
	case strings.TrimSpace(s) == "":
		return errors.New("is blank; write a text or leave the key out")
	case err != nil:
		reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return fmt.Errorf("is not a regular expression: %s; correct it (the syntax is RE2)", reason)
	case re.NumSubexp() != 1:
		return fmt.Errorf("has %d groups; write (...) around exactly the part to take, and (?:...) elsewhere",
			re.NumSubexp())
	}
	return nil
}

func checkBranch(s string) error {
	bad := strings.TrimSpace(s) == "" || s[0] == '-' || strings.ContainsAny(s, " ~^:?*[\\") || strings.Contains(s, "..")
	return failed(bad, "is not a branch")
}

func checkAddress(s string) error {
	u, err := url.Parse(s)
	return failed(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https", "is not an address")
}

// UsageGroups are the named groups of an expression that finds usage: tokens, and dollars.
func UsageGroups() []string { return []string{"input", "output", "cache_read", "cache_write", "usd"} }

// checkUsage checks an expression that finds usage.
func checkUsage(s string) error {
	re, err := regexp.Compile(s)
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return fmt.Errorf("is not a regular expression: %s; correct it (the syntax is RE2)", reason)
	}
	names := slices.DeleteFunc(re.SubexpNames(), func(n string) bool { return n == "" })
	for _, n := range names {
		if !slices.Contains(UsageGroups(), n) {
			return fmt.Errorf("has a group %q; name its groups %s", n, strings.Join(UsageGroups(), ", "))
		}
	}
	return failed(len(names) == 0, "has no named group; write one such as (?P<output>[0-9]+)")
}
