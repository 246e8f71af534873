package scripted

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// faultFile writes faults and gives the environment that names them.
func faultFile(t *testing.T, faults string) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "faults.yaml")
	require.NoError(t, os.WriteFile(file, []byte(faults), 0o644))
	return map[string]string{FaultsEnv: file, CallLogEnv: filepath.Join(filepath.Dir(file), "calls.jsonl")}
}

func TestFaults(t *testing.T) {
	honest := answerOf(t, builderPrompt, nil).Result
	text := func(stdout string) string {
		var e envelope
		_ = json.Unmarshal([]byte(stdout), &e)
		return e.Result
	}
	for name, row := range map[string]struct {
		fault, prompt string
		code          int
		check         func(t *testing.T, stdout, stderr string)
	}{
		"exit": {"do: exit, code: 7, stderr: Connection reset by peer", builderPrompt,
			7, func(t *testing.T, stdout, stderr string) {
				require.Empty(t, stdout)
				require.Equal(t, "Connection reset by peer\n", stderr)
			}},
		"exit without a code": {"do: exit", builderPrompt, 1, func(*testing.T, string, string) {}},
		"rate_limit": {"do: rate_limit", builderPrompt, 1, func(t *testing.T, stdout, stderr string) {
			require.Contains(t, stderr, "429")
		}},
		"empty": {"do: empty", builderPrompt, 0, func(t *testing.T, stdout, stderr string) {
			require.Empty(t,
				stdout)
		}},
		"bad_json": {"do: bad_json", builderPrompt, 0, func(t *testing.T, stdout, stderr string) {
			require.NotEmpty(t, stdout)
			require.False(t, json.Valid([]byte(stdout)))
		}},
		"is_error": {"do: is_error, text: overloaded", builderPrompt, 0, func(t *testing.T, stdout, stderr string) {
			require.Contains(t, stdout, `"is_error":true`)
			require.Equal(t, "overloaded", text(stdout))
		}},
		"truncate": {"do: truncate", builderPrompt, 0, func(t *testing.T, stdout, stderr string) {
			require.Contains(t, text(stdout), "<!DOCTYPE html>")
			require.NotContains(t, text(stdout), "</html>")
		}},
		"no_html": {"do: no_html", builderPrompt, 0, func(t *testing.T, stdout, stderr string) {
			require.NotContains(t, text(stdout), "html>")
			require.Contains(t, text(stdout), "DISCOVERY_LOG_END")
		}},
		"no_sections": {"do: no_sections", verifierPrompt, 0, func(t *testing.T, stdout, stderr string) {
			require.NotContains(t, text(stdout), "## ")
			require.NotContains(t, text(stdout), "ABSENT")
		}},
		"no_markers": {"do: no_markers", builderPrompt, 0, func(t *testing.T, stdout, stderr string) {
			require.True(t, strings.HasSuffix(text(stdout), "</html>\n```\n"))
		}},
		"width": {"do: width", strings.Replace(builderPrompt, "<main", "<style>main { max-width: 950px }</style><main",
			1), 0,
			func(t *testing.T, stdout, stderr string) { require.Contains(t, text(stdout), "max-width: 800px") }},
		"a page that was too narrow is mended": {"do: slow, seconds: 0",
			strings.Replace(builderPrompt, "<main", "<style>main { max-width: 800px }</style><main", 1), 0,
			func(t *testing.T, stdout, stderr string) { require.Contains(t, text(stdout), "max-width: 950px") }},
		"big": {"do: big, bytes: 100000", builderPrompt, 0, func(t *testing.T, stdout, stderr string) {
			require.Len(t, text(stdout), 100000)
			require.True(t, strings.HasPrefix(text(stdout), honest))
		}},
		"say": {`do: say, text: "PA-05: 4.3/4"`, builderPrompt, 0, func(t *testing.T, stdout, stderr string) {
			require.Equal(t, "PA-05: 4.3/4", text(stdout))
		}},
		"slow until a file exists": {"do: slow, seconds: 3600, until: " + os.Args[0], builderPrompt, 0,
			func(t *testing.T, stdout, stderr string) { require.Equal(t, honest, text(stdout)) }},
		"slow": {"do: slow, seconds: 0.001", builderPrompt, 0, func(t *testing.T, stdout, stderr string) {
			require.Equal(t, honest, text(stdout))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			at := strings.TrimLeft(parse(row.prompt).at(), "0")
			code, stdout, stderr := invoke(row.prompt, faultFile(t, "- {at: "+at+", "+row.fault+"}\n"))
			require.Equal(t, row.code, code, stderr)
			row.check(t, stdout, stderr)
		})
	}
}

func TestAttemptsAreCountedAcrossProcesses(t *testing.T) {
	env := faultFile(
		t, "- {at: 1, attempt: 2-3, do: exit}\n- {at: 1, attempt: 4, do: exit, code: 9}\n- {at: 2, attempt: all, do: "+
			"exit, code: 5}\n",
	)
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
	require.Equal(t, []int{9, 8}, []int{first, second})
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

func TestEmptyFaultFileHasNoFaults(t *testing.T) {
	code, _, stderr := invoke(builderPrompt, faultFile(t, "# nothing\n"))
	require.Zero(t, code, stderr)
}
