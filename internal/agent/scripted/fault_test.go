package scripted

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/run"
)

// faultFile writes faults and returns the environment that names them.
func faultFile(t *testing.T, faults string) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "faults.yaml")
	require.NoError(t, os.WriteFile(file, []byte(faults), 0o644))
	return map[string]string{FaultsEnv: file, CallLogEnv: filepath.Join(filepath.Dir(file), "calls.jsonl")}
}

func TestFaults(t *testing.T) {
	honest := answerOf(t, builderPrompt, nil).Result
	narrow := strings.Replace(builderPrompt, "<main", "<style>main { max-width: 800px }</style><main", 1)
	wide := strings.Replace(narrow, "800px", "950px", 1)
	for name, row := range map[string]struct {
		fault, prompt    string
		code             int
		category         run.Category // of the reply
		contains, misses string
	}{
		"exit":                 {"do: exit, code: 7, stderr: Connection reset", builderPrompt, 7, run.CategoryAgentExit, "", ""},
		"exit without a code":  {"do: exit", builderPrompt, 1, run.CategoryAgentExit, "", ""},
		"rate_limit":           {"do: rate_limit", builderPrompt, 1, run.CategoryRateLimit, "", ""},
		"empty":                {"do: empty", builderPrompt, 0, run.CategoryOutputEmpty, "", ""},
		"bad_json":             {"do: bad_json", builderPrompt, 0, run.CategoryOutputTruncated, "", ""},
		"is_error":             {"do: is_error, text: overloaded", builderPrompt, 0, run.CategoryRateLimit, "overloaded", ""},
		"is_error without one": {"do: is_error", builderPrompt, 0, run.CategoryAgentExit, "", ""},
		"truncate":             {"do: truncate", builderPrompt, 0, run.CategoryOK, "<!DOCTYPE html>", "</html>"},
		"no_html":              {"do: no_html", builderPrompt, 0, run.CategoryOK, "DISCOVERY_LOG_END", "html>"},
		"no_sections":          {"do: no_sections", verifierPrompt, 0, run.CategoryOK, "", "ABSENT"},
		"no_markers":           {"do: no_markers", builderPrompt, 0, run.CategoryOK, "</html>\n```\n", "<!-- "},
		"width":                {"do: width", wide, 0, run.CategoryOK, "max-width: 800px", ""},
		"a narrow page":        {"do: slow, seconds: 0.001", narrow, 0, run.CategoryOK, "max-width: 950px", ""},
		"big":                  {"do: big, bytes: 100000", builderPrompt, 0, run.CategoryOK, honest, ""},
		"say":                  {`do: say, text: "PA-05: 4.3/4"`, builderPrompt, 0, run.CategoryOK, "PA-05: 4.3/4", honest},
		"slow until a file exists": {"do: slow, seconds: 3600, until: " + os.Args[0], builderPrompt, 0, run.CategoryOK,
			honest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := strings.TrimLeft(parse(row.prompt).at(), "0")
			code, stdout, stderr := invoke(row.prompt, faultFile(t, "- {at: "+at+", "+row.fault+"}\n"))
			require.Equal(t, row.code, code, stderr)
			reply, failure := agent.ReadReply(adapter.ClaudeJSON, []byte(stdout), agent.Exit{Code: code}, stderr,
				agent.Prices{}, len(row.prompt))
			require.Contains(t, reply.Text, row.contains)
			if row.misses != "" {
				require.NotContains(t, reply.Text, row.misses)
			}
			if failure != nil {
				require.Equal(t, row.category, failure.Category)
				return
			}
			require.Equal(t, run.CategoryOK, row.category)
			require.Equal(t, "scripted", reply.Model)
			require.Equal(t, run.CostExact, reply.Known)
			if name == "big" {
				require.Len(t, reply.Text, 100000)
			}
		})
	}
}

func TestAttemptsAreCountedAcrossProcesses(t *testing.T) {
	env := faultFile(t, "- {at: 1, attempt: 2-3, do: exit}\n- {at: 1, attempt: 4, do: exit, code: 9}\n"+
		"- {at: 2, attempt: all, do: exit, code: 5}\n")
	var codes []int
	for range 5 {
		code, _, _ := invoke(builderPrompt, env)
		codes = append(codes, code)
		code, _, _ = invoke(verifierPrompt, env)
		require.Equal(t, 5, code, "all")
	}
	require.Equal(t, []int{0, 1, 1, 9, 0}, codes)
}

func TestFirstMatchingFaultCounts(t *testing.T) {
	env := faultFile(t, "- {at: 001, attempt: 2, do: exit, code: 8}\n- {at: 1, attempt: all, do: exit, code: 9}\n")
	first, _, _ := invoke(builderPrompt, env)
	second, _, _ := invoke(builderPrompt, env)
	require.Equal(t, 9, first)
	require.Equal(t, 8, second)
}

func TestWrongFaultFilesAreRefused(t *testing.T) {
	for message, faults := range map[string]string{
		`do: "explode" is unknown; use one of exit, rate_limit`: "- {at: 1, do: explode}",
		"field atempt not found":                                "- {at: 1, atempt: 2, do: exit}",
		"at is missing":                                         "- {do: exit}",
		`attempt: "often" is none; write 1, 1-4 or all`:         "- {at: 1, attempt: often, do: exit}",
		`when: "later" is unknown`:                              "- {at: 1, do: kill_engine, when: later}",
		"fault 2":                                               "- {at: 1, do: exit}\n- {at: 1}",
		"cannot unmarshal":                                      "at: 1",
	} {
		env := faultFile(t, faults)
		code, stdout, stderr := invoke(builderPrompt, env)
		require.Equal(t, 2, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, message)
		require.NoFileExists(t, env[FaultsEnv]+".attempts", "what was refused is not an attempt")
		require.NoFileExists(t, env[CallLogEnv])
	}
	code, _, stderr := invoke(builderPrompt, map[string]string{FaultsEnv: "/nowhere/faults.yaml"})
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "/nowhere/faults.yaml")
}
