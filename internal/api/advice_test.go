package api

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tools is a host whose clients call tools.
func tools() Host {
	return Host{Program: "starter", Form: &Form{Do: "call", Call: func(name string, in map[string]any) string {
		raw, err := json.Marshal(in)
		if err != nil || len(in) == 0 {
			return "tool_" + name
		}
		return "tool_" + name + " " + string(raw)
	}}}
}

func TestAdviceNamesOperations(t *testing.T) {
	for text, want := range map[string]string{
		"cannot resume a run that is done (allowed: starter status, starter run --follow-up, starter repair-state)": "" +
			`cannot resume a run that is done (allowed: tool_status, tool_start {"follow_up":"FOLLOW-UP"}, starter ` +
			"repair-state " +
			"[by an operator at a terminal])",
		`Fix the cause, then send {"force":true} or run "starter resume RUN --force --reason TEXT"`: "Fix the cause, then " +
			`send {"force":true} or call tool_resume {"force":true,"reason":"TEXT","run":"r1"}`,
		"Free space there, then run: starter resume '/my runs/it'\\''s'": "Free space there, then call: tool_resume " +
			`{"run":"/my runs/it's"}`,
		"restore it (starter repair-state /runs/1 --apply), then revert": "restore it " +
			"(starter repair-state /runs/1 --apply [by an operator at a terminal]), then revert",
		"Run `starter server start`, or set the address": "Run `starter server start` " +
			"[by an operator at a terminal], or set " +
			"the address",
		"start runs with the starter binary: starter run --config FILE": "start runs with the starter binary: tool_start " +
			`{"config":"FILE"}`,
		"starter budget /runs/1 --usd 200, then starter resume /runs/1": `tool_budget {"run":"/runs/1","usd":200}, then ` +
			`tool_resume {"run":"/runs/1"}`,
		"continue with it: starter run --follow-up /runs/1 --task 'fix the rest'": "continue with it: tool_start " +
			`{"follow_up":"/runs/1","task":"fix the rest"}`,
		"starter fork /runs/1 --from CHECKPOINT --task other": `tool_fork ` +
			`{"from":"CHECKPOINT","run":"/runs/1","task":"other"}`,
		"starter decide RUN":                      `tool_question {"run":"r1"}`,
		"(allowed: starter decide, starter diff)": "(allowed: tool_decide, tool_diff)",
		"starter decide /runs/1 --action continue_with_waiver --feedback TEXT": `tool_decide ` +
			`{"action":"continue_with_waiver","feedback":"TEXT","run":"/runs/1"}`,
		"make it readable, or run \"starter resume RUN\" in a terminal with the variables": "make it readable, or run " +
			`"starter resume RUN" in a terminal with the variables`,
		"  amend: starter run --config /p.yaml --output-dir /runs/1 --amend\n  replace: starter run --config /p.yaml " +
			"--output-dir /runs/1 --fresh": "  amend: tool_amend " + `{"config":"/p.yaml","run":"/runs/1"}` + "\n  replace: " +
			"starter run --config /p.yaml --output-dir /runs/1 --fresh [by an operator at a terminal]",
		"--force needs --reason, or take another --output-dir": "force needs reason, or take another directory",
		"to list them, run: starter checkpoints":               "to list them, call: tool_checkpoints",
		"run 'starter' twice, or start the starter":            "run 'starter' twice, or start the starter",
		"starter check lists what is damaged: then continue": "starter check [by an operator at a terminal] lists " +
			"what is damaged: then continue",
		"attach to that run: starter attach 77aa-1. Enough": `attach to that run: tool_wait {"run":"77aa-1"}. Enough`,
	} {
		require.Equal(t, want, tools().Advice(text, "r1"), text)
		require.Equal(t, text, Host{}.Advice(text, "r1"))
	}
	h := tools()
	h.IDs = true
	require.Equal(t, `tool_resume {"run":"RUN"}`, h.Advice("starter resume /runs/1", ""), "no directories are named there")
}

// forPeople are commands in messages that an operation seems to replace, and does not.
var forPeople = regexp.MustCompile(`starter (resume \S+ --output-dir|resume \S+" in a terminal)`)

// TestEveryAdviceHasAForm reads the messages of all packages that an agent or a client of HTTP can get. No command
// remains in them that an operation replaces.
func TestEveryAdviceHasAForm(t *testing.T) {
	remains := regexp.MustCompile("starter ([a-z][a-z-]*)")
	found, operations := 0, map[string]bool{}
	for _, o := range Table() {
		operations[o.Name] = true
	}
	for file, text := range messages(t) {
		if !remains.MatchString(text) {
			continue
		}
		shown := tools().Advice(text, "")
		for _, at := range remains.FindAllStringSubmatchIndex(shown, -1) {
			verb, rest := shown[at[2]:at[3]], shown[at[3]:]
			if !isVerb(verb) {
				continue // the word starter, and no command
			}
			found++
			if marked, _, _ := strings.Cut(rest, "starter"); !strings.Contains(marked, " a terminal") {
				t.Errorf("%s: a command without a form: %s\n%s", file, text, shown)
			}
			if operations[verb] && !forPeople.MatchString(shown) {
				t.Errorf("%s: a command that an operation replaces: %s\n%s", file, text, shown)
			}
		}
	}
	require.Greater(t, found, 30)
}

// TestMessagesOfActivitiesNameTheRun: who reads one can type its commands.
func TestMessagesOfActivitiesNameTheRun(t *testing.T) {
	for file, text := range messages(t) {
		if strings.HasPrefix(file, "activities/") {
			require.NotRegexp(t, `starter [a-z-]+ RUN\b`, text, file)
		}
	}
}

// messages are the texts in the sources of the packages behind the operations, with values in their verbs.
func messages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	root := os.DirFS("../..")
	require.NoError(t, fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && regexp.MustCompile(`^(\.git|bin|devserver|test|tools|examples|starter|worker|internal/(cli|doctor|`+
			`report|watch|workercmd|console|scaffold))$`).MatchString(name):
			return fs.SkipDir
		case path.Ext(name) != ".go" || name == "workflows/details.go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		require.NoError(t, err)
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			x, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			if text, whole := literal(x); whole {
				all[set.Position(n.Pos()).String()] = filled(text)
				return false
			}
			return true
		})
		return nil
	}))
	return all
}

// literal is the text of a string, or of several that are added.
func literal(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			text, err := strconv.Unquote(x.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		a, left := literal(x.X)
		b, right := literal(x.Y)
		if x.Op == token.ADD && (left || right) {
			if !left {
				a = "/runs/1"
			}
			if !right {
				b = "/runs/1"
			}
			return a + b, true
		}
	case *ast.CallExpr: // quotes a word
		return "", false
	}
	return "", false
}

// filled replaces the verbs of a format.
func filled(format string) string {
	return regexp.MustCompile(`%[-+.0-9]*[a-z]`).ReplaceAllStringFunc(format, func(verb string) string {
		if strings.HasSuffix(verb, "d") {
			return "7"
		}
		return "/runs/1"
	})
}
