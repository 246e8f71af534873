package api

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/rundir"
)

// Form is how the clients of an interface do what a message advises. Messages are written for a terminal: they name
// commands of the starter. [Host.Advice] is the one place that names them in another form.
type Form struct {
	Do   string // the verb for it: "call" a tool, "send" a request
	Call func(operation string, input map[string]any) string
}

// atTerminal marks a command that no operation replaces.
const atTerminal = " [by an operator at a terminal]"

// Advice returns a message in the form of the clients of this host: each command of the starter becomes the operation
// that does the same, or is marked as one for an operator. run is the run that the message is about; empty: unknown.
func (h Host) Advice(text, run string) string {
	if h.Form == nil {
		return text
	}
	var b strings.Builder
	for {
		at := commandStart.FindStringSubmatchIndex(text)
		if at == nil {
			return b.String() + keysIn(text)
		}
		do, quote := text[at[2]:at[3]], text[at[4]:at[5]]
		words, end := commandWords(text[at[6]:], quote)
		if len(words) == 0 { // the word starter, and no command
			b.WriteString(text[:at[6]])
			text = text[at[6]:]
			continue
		}
		before, command, after := text[:at[2]], text[at[2]:at[6]+end], text[at[6]+end:]
		call, ok := h.callOf(words, run)
		switch there := terminal.MatchString(after); {
		case !ok && !there:
			command += atTerminal
		case ok && !there && noun.MatchString(before):
			command = do + call
		case ok && !there:
			command = h.do(do) + call
		}
		b.WriteString(keysIn(before) + command)
		text = after
	}
}

// advices is Advice for several messages.
func (h Host) advices(texts []string, run string) []string {
	all := []string{}
	for _, text := range texts {
		all = append(all, h.Advice(text, run))
	}
	return all
}

// commandStart is what precedes the words of a command: "run ", a quote, and the name of the program.
var commandStart = lazyregexp.New("(?:^|[\\s]|[^$]\\()((?:[Rr]un:? )?)([\"`]?)starter ()")

// terminal follows a command that needs one.
var terminal = lazyregexp.New(`^ (in|at|from) a terminal`)

// keysIn names the flags in a text as the keys that they are in inputs.
func keysIn(text string) string {
	return flagInText.ReplaceAllStringFunc(text, func(flag string) string {
		name := strings.TrimPrefix(flag, "--")
		key := cmp.Or(keysOf[name], strings.ReplaceAll(name, "-", "_"))
		if slices.ContainsFunc(Table(), func(o Operation) bool { return hasKey(o.Input, key) }) {
			return key
		}
		return flag
	})
}

var flagInText = lazyregexp.New(`--[a-z][a-z-]*[a-z]\b`)

// noun ends before "run" where that is a run.
var noun = lazyregexp.New(`(^|\s)(a|another|new|one|that|the|this) $`)

// do is the verb of an advice, as in "run: ".
func (h Host) do(run string) string {
	if run == "" {
		return ""
	}
	verb := h.Form.Do
	if run[0] == 'R' {
		verb = strings.ToUpper(verb[:1]) + verb[1:]
	}
	return verb + run[len("run"):]
}

// commandWords reads the words of a command up to the end of its quotes, or as far as they cannot be prose. end is
// where the command ends in the text, after its quotes.
func commandWords(text, quote string) (words []string, end int) {
	if quote != "" {
		inside, _, closed := strings.Cut(text, quote)
		if !closed {
			return nil, 0
		}
		for rest := inside; ; {
			word, n := shellWord(rest)
			if n == 0 {
				break
			}
			words, rest = append(words, word), rest[n:]
		}
		if len(words) == 0 || !isVerb(words[0]) {
			return nil, 0
		}
		return words, len(inside) + len(quote)
	}
	for {
		word, n := shellWord(text[end:])
		bare := strings.TrimRight(word, ".,;:)!?")
		cut := len(word) - len(bare)
		if n == 0 || bare == "" || !commandWord(words, bare) {
			return words, end
		}
		words, end = append(words, bare), end+n-cut
		if cut > 0 {
			return words, end
		}
	}
}

// shellWord reads a word, which may be in single quotes, and the spaces before it. n is how long both are.
func shellWord(text string) (word string, n int) {
	n = len(text) - len(strings.TrimLeft(text, " "))
	for n < len(text) && text[n] != ' ' && text[n] != '\n' {
		if text[n] == '\\' && n+1 < len(text) {
			n++
			word, n = word+text[n:n+1], n+1
			continue
		}
		if text[n] != '\'' {
			word, n = word+text[n:n+1], n+1
			continue
		}
		inside, _, closed := strings.Cut(text[n+1:], "'")
		if !closed {
			return word, len(text)
		}
		word, n = word+inside, n+len(inside)+2
	}
	if word == "" {
		return "", 0
	}
	return word, n
}

var (
	flagWord = lazyregexp.New(`^--?[a-z][a-z-]*$`)
	argument = lazyregexp.New(`^([A-Z][A-Z-]*|.*[0-9/{].*)$`) // RUN, an id, a path
)

// commandWord reports whether a word belongs to the command that has these words already.
func commandWord(before []string, word string) bool {
	switch {
	case len(before) == 0:
		return isVerb(word)
	case flagWord.MatchString(word), argument.MatchString(word):
		return true
	case len(before) == 1 && slices.Contains(subverbs[before[0]], word):
		return true
	}
	flag, ok := strings.CutPrefix(before[len(before)-1], "--")
	return ok && slices.Contains(wordFlags, flag)
}

// wordFlags are the flags whose values may be plain words.
var wordFlags = []string{"action", "to", "from", "model", "policy", "role", "can", "task"}

// callOf is an operation in the form of the host, from a command. It is false if no operation does the same.
func (h Host) callOf(words []string, run string) (string, bool) {
	name, args := operationOf(words)
	i := slices.IndexFunc(Table(), func(o Operation) bool { return o.Name == name })
	if i < 0 {
		return "", false
	}
	input, ok := inputOf(Table()[i], args)
	if !ok {
		return "", false
	}
	if named, _ := input["run"].(string); named != "" {
		input["run"] = h.nameOf(named, run)
	}
	return h.Form.Call(name, input), true
}

// operationOf returns the operation of a command, and its arguments.
func operationOf(words []string) (name string, args []string) {
	switch name, args = words[0], words[1:]; {
	case name == "run" && slices.Contains(args, "--amend"): // its run is that of a directory
		return "amend", slices.DeleteFunc(args, func(a string) bool { return a == "--amend" || a == "--output-dir" })
	case name == "run":
		return "start", args
	case name == "watch", name == "attach":
		return "wait", args
	case name == "report":
		return "evidence", args
	case name == "snapshot" && len(args) > 0 && args[0] == "list":
		return "snapshots", args[1:]
	case name == "decide" && len(args) > 0 && !slices.Contains(args, "--action"):
		return "question", slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--show" })
	}
	return name, args
}

// keysOf are the keys of flags that are not named like them.
var keysOf = map[string]string{"output-dir": "directory", "id": "question", "budget": "budget_usd"}

// inputOf is the input of an operation from the arguments of a command; false: the operation lacks one of them.
func inputOf(o Operation, args []string) (map[string]any, bool) {
	input := map[string]any{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		flag, isFlag := strings.CutPrefix(arg, "--")
		key := strings.ReplaceAll(flag, "-", "_")
		switch {
		case !isFlag:
			key = positional(o, input)
		case keysOf[flag] != "" && !hasKey(o.Input, key):
			key = keysOf[flag]
		}
		field, known := fieldOf(o.Input, key)
		if !known {
			return nil, false
		}
		value := arg
		if isFlag {
			if field.Kind() == reflect.Bool {
				input[key] = true
				continue
			}
			if value = strings.ToUpper(flag); len(args) > 0 {
				value, args = args[0], args[1:]
			}
		}
		input[key] = valueOf(field, value)
	}
	return input, true
}

// positional is the key of the next argument that is not a flag: the run, then the text or the paths.
func positional(o Operation, input map[string]any) string {
	keys := []string{"run", "text", "paths"}
	if o.Name == "start" {
		keys = []string{"config"}
	}
	for _, key := range keys {
		if _, given := input[key]; !given && hasKey(o.Input, key) {
			return key
		}
	}
	return ""
}

// valueOf is an argument in the type of its field; a placeholder such as N stays a text.
func valueOf(field reflect.Type, text string) any {
	switch field.Kind() {
	case reflect.Slice:
		return []string{text}
	case reflect.Int, reflect.Int64, reflect.Float64:
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return json.Number(strconv.FormatFloat(n, 'f', -1, 64))
		}
	}
	return text
}

func hasKey(input reflect.Type, key string) bool {
	_, ok := fieldOf(input, key)
	return ok
}

func fieldOf(input reflect.Type, key string) (reflect.Type, bool) {
	for _, f := range reflect.VisibleFields(input) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == key && name != "-" {
			return f.Type, true
		}
	}
	return nil, false
}

// nameOf names a run as the clients of this host may: some name no directories.
func (h Host) nameOf(named, run string) string {
	path := strings.Contains(named, "/")
	switch {
	case named == "RUN" && run != "", path && h.IDs && run != "":
		return run
	case path && h.IDs:
		if claim, err := rundir.At(named).Claim(); err == nil {
			return claim.RunID
		}
		return "RUN"
	}
	return named
}

// verbs are the commands of the starter that messages may name, besides those of operations.
var verbs = func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(`amend attach budget cancel check checkpoints codec completion config
		allow console cost-report decide demo diagnose diff doctor evidence fork init list logs
		mcp plan promote quality-report rebuild remove repair-state replay report resume revert run server
		snapshot status steer store token verify version watch worker`) {
		all[name] = true
	}
	return all
}()

// isVerb reports whether a word is a command of the starter that messages may name.
func isVerb(word string) bool {
	return verbs[word] || slices.ContainsFunc(Table(), func(o Operation) bool { return o.Verb == word })
}

// subverbs are the second words of commands.
var subverbs = map[string][]string{
	"codec": {"key", "serve"}, "console": {"link"},
	"server":   {"start", "stop", "status", "build", "env", "ui"},
	"snapshot": {"list", "diff", "checkout"}, "store": {"gc"}, "token": {"create", "list", "revoke"},
}
