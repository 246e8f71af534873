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

// Scripted is the first word of an agent's command that selects the built-in offline agent.
const Scripted = "scripted"

// nameShape is the syntax of everything that becomes part of a file name or an ID.
var nameShape = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?$`)

const nameAdvice = "cannot be a name; use letters, digits, dots, dashes and underscores, at most 64"

// formats are the kinds of values that the schema names and only Go can check. If the schema has a message, that
// message is shown instead of the error's text.
var formats = map[string]func(any) error{
	"text":        text(func(s string) error { return failed(strings.TrimSpace(s) == "", "is blank") }),
	"label":       text(checkLabel),
	"local-path":  text(checkLocalPath),
	"file-name":   text(checkFileName),
	"go-duration": text(checkDuration),
	"byte-size":   text(checkSize),
	"one-group":   text(checkExpression),
	"usage":       text(checkUsage),
	"tree-path":   text(CheckPath),
	"branch":      text(checkBranch),
	"web-address": text(checkAddress),
	"ascending":   checkAscending,
	"share":       checkShare,
}

// text is a check of a text; other types of values are left to the schema.
func text(check func(string) error) func(any) error {
	return func(v any) error {
		if s, ok := v.(string); ok {
			return check(s)
		}
		return nil
	}
}

func failed(when bool, what string) error {
	if when {
		return errors.New(what)
	}
	return nil
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

// checkAscending checks a list of exactly two numbers, the first not above the second.
func checkAscending(v any) error {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	var numbers []float64
	for _, item := range list {
		if n, ok := item.(float64); ok {
			numbers = append(numbers, n)
		}
	}
	return failed(len(list) != 2 || len(numbers) != 2 || numbers[0] > numbers[1], "does not go up")
}

func checkShare(v any) error {
	if _, labelled := v.(map[string]any); labelled {
		return nil // reported as what has no shift
	}
	s, _ := v.(string)
	_, _, ok := parseShare(s)
	return failed(!ok && v != 0.0, "is not a share")
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
