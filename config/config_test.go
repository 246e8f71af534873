package config

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// alone is a process without settings but those of a settings file, if it is not empty.
func alone(t *testing.T, file string) {
	t.Helper()
	home := t.TempDir()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "PASSBOOK_") {
			t.Setenv(name, "")
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	if file == "" {
		return
	}
	dir := must(os.UserConfigDir())(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "passbook"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "passbook", "config.yaml"), []byte(file), 0o644))
}

// must returns the value of a call that may not fail: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); require.NoError(t, err); return v }
}

func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Flags(fs)
	require.NoError(t, fs.Parse(args))
	return fs
}

// every names each setting with a value that is not its default, as text and as it is read.
var every = map[string]struct {
	text string
	get  func(Settings) any
	want any
}{
	"state_dir":      {"/elsewhere/state", func(s Settings) any { return s.StateDir }, "/elsewhere/state"},
	"run_root":       {"/elsewhere/runs", func(s Settings) any { return s.RunRoot }, "/elsewhere/runs"},
	"store":          {"s3://bucket", func(s Settings) any { return s.Store }, "s3://bucket"},
	"task_queue":     {"other", func(s Settings) any { return s.TaskQueue }, "other"},
	"calls":          {"9", func(s Settings) any { return s.Calls }, 9},
	"browser":        {"/opt/chromium", func(s Settings) any { return s.Browser }, "/opt/chromium"},
	"prices":         {"own-1 1 2", func(s Settings) any { return s.Prices }, Lines{"own-1 1 2"}},
	"heartbeat":      {"25s", func(s Settings) any { return s.Heartbeat }, 25 * time.Second},
	"recheck":        {"5s", func(s Settings) any { return s.Recheck }, 5 * time.Second},
	"idle":           {"3h", func(s Settings) any { return s.Idle }, 3 * time.Hour},
	"keeper":         {"false", func(s Settings) any { return s.Keeper }, false},
	"keep_awake":     {"false", func(s Settings) any { return s.KeepAwake }, false},
	"drain":          {"10m", func(s Settings) any { return s.Drain }, 10 * time.Minute},
	"continue_after": {"12", func(s Settings) any { return s.ContinueAfter }, 12},
	"server":         {"/opt/temporal", func(s Settings) any { return s.Server }, "/opt/temporal"},
	"environment":    {"laptop", func(s Settings) any { return s.Environment }, "laptop"},

	"at_once.host":     {"8", func(s Settings) any { return s.AtOnce.Host }, 8},
	"at_once.account":  {"2", func(s Settings) any { return s.AtOnce.Account }, 2},
	"at_once.accounts": {"work=1,home=3", func(s Settings) any { return s.AtOnce.Accounts }, Words{"work=1", "home=3"}},
	"per_day.usd":      {"7.5", func(s Settings) any { return s.PerDay.USD }, 7.5},
	"per_day.tokens":   {"9000", func(s Settings) any { return s.PerDay.Tokens }, int64(9000)},
	"per_day.calls":    {"40", func(s Settings) any { return s.PerDay.Calls }, 40},

	"policy.agents":     {"claude,codex", func(s Settings) any { return s.Policy.Agents }, Words{"claude", "codex"}},
	"policy.env":        {"A,B", func(s Settings) any { return s.Policy.Env }, Words{"A", "B"}},
	"policy.budget_usd": {"12.5", func(s Settings) any { return s.Policy.Budget }, 12.5},
	"policy.forbid":     {"model,force", func(s Settings) any { return s.Policy.Forbid }, Words{"model", "force"}},

	"redact.env":      {"A_KEY,*_B", func(s Settings) any { return s.Redact.Env }, Words{"A_KEY", "*_B"}},
	"redact.patterns": {`badge \d{2,4}`, func(s Settings) any { return s.Redact.Patterns }, Lines{`badge \d{2,4}`}},
	"sandbox.mode":    {"strict", func(s Settings) any { return s.Sandbox.Mode }, "strict"},
	"sandbox.network": {"internet,10.0.0.1:80", func(s Settings) any { return s.Sandbox.Network }, Words{"internet", "10.0.0.1:80"}},
	"sandbox.read":    {"/a,~/b", func(s Settings) any { return s.Sandbox.Read }, Words{"/a", "~/b"}},
	"sandbox.write":   {"/c", func(s Settings) any { return s.Sandbox.Write }, Words{"/c"}},
	"codec.key":       {"2026-11", func(s Settings) any { return s.Codec.Key }, "2026-11"},
	"codec.keys": {"2026-11=env:CODEC_A,old=file:/key", func(s Settings) any { return s.Codec.Keys },
		Words{"2026-11=env:CODEC_A", "old=file:/key"}},
	"codec.endpoint": {"http://127.0.0.1:8234", func(s Settings) any { return s.Codec.Endpoint },
		"http://127.0.0.1:8234"},
	"codec.token": {"env:CODEC_TOKEN", func(s Settings) any { return s.Codec.Token }, "env:CODEC_TOKEN"},

	"policy.stores":         {"s3://a,s3://b", func(s Settings) any { return s.Policy.Stores }, Words{"s3://a", "s3://b"}},
	"policy.roots":          {"/runs,/more", func(s Settings) any { return s.Policy.Roots }, Words{"/runs", "/more"}},
	"console.link_key_file": {"/keys/links", func(s Settings) any { return s.Console.LinkKeyFile }, "/keys/links"},

	"deployment.name":     {"passbook", func(s Settings) any { return s.Deployment.Name }, "passbook"},
	"deployment.build_id": {"v0.1.0", func(s Settings) any { return s.Deployment.BuildID }, "v0.1.0"},
	"metrics.listen":      {"127.0.0.1:9464", func(s Settings) any { return s.Metrics.Listen }, "127.0.0.1:9464"},

	"forge.url": {"https://github.example.org", func(s Settings) any { return s.Forge.URL }, "https://github.example.org"},
	"console.url": {"https://passbook.example.org:8443", func(s Settings) any { return s.Console.URL },
		"https://passbook.example.org:8443"},
	"console.link_expires": {"36h", func(s Settings) any { return s.Console.LinkExpires }, 36 * time.Hour},
}

func TestConsoleAddressIsAnOrigin(t *testing.T) {
	for _, address := range []string{
		"passbook.example.org", "ftp://example.org", "https://", "https://u:p@example.org", "https://example.org/a",
		"https://example.org?a=b", "https://example.org#a", "http://[::1",
	} {
		t.Setenv("PASSBOOK_CONSOLE_URL", address)
		_, err := Load(nil)
		require.ErrorContains(t, err, "it must be an http or https address without a path", address)
		require.NotContains(t, err.Error(), ":p@")
	}
	t.Setenv("PASSBOOK_CONSOLE_URL", "http://127.0.0.1:8400/")
	t.Setenv("PASSBOOK_CONSOLE_LINK_EXPIRES", "59s")
	_, err := Load(nil)
	require.ErrorContains(t, err, "console.link_expires is 59s; it must be at least 1m")
}

func TestTableCoversEverySetting(t *testing.T) {
	require.Len(t, every, len(names()))
	for _, name := range names() {
		require.Contains(t, every, name)
	}
}

func TestEverySourceSetsEverySetting(t *testing.T) {
	for name, s := range every {
		ways := map[string]func(t *testing.T) *pflag.FlagSet{
			"file": func(t *testing.T) *pflag.FlagSet { alone(t, inFile(name, s.text)); return flags(t) },
			"variable": func(t *testing.T) *pflag.FlagSet {
				alone(t, "")
				t.Setenv("PASSBOOK_"+strings.ReplaceAll(strings.ToUpper(name), ".", "_"), s.text)
				return flags(t)
			},
			"flag": func(t *testing.T) *pflag.FlagSet { alone(t, ""); return flags(t, "--"+flagName(name), s.text) },
		}
		for way, set := range ways {
			t.Run(name+" by "+way, func(t *testing.T) {
				got := must(Load(set(t)))(t)
				require.Equal(t, s.want, s.get(got))
			})
		}
	}
}

// inFile is a settings file with one setting.
func inFile(name, text string) string {
	if part, rest, nested := strings.Cut(name, "."); nested {
		return part + ":\n  " + rest + ": '" + text + "'\n"
	}
	return name + ": " + text + "\n"
}

func TestListsAreSplit(t *testing.T) {
	alone(t, "redact:\n  env: [A_KEY, B]\n  patterns:\n    - 'a,b'\n    - c\n")
	s := must(Load(flags(t)))(t)
	require.Equal(t, Redact{Env: Words{"A_KEY", "B"}, Patterns: Lines{"a,b", "c"}}, s.Redact)
	t.Setenv("PASSBOOK_REDACT_PATTERNS", "x,y\nz\n")
	s = must(Load(flags(t)))(t)
	require.Equal(t, Redact{Env: Words{"A_KEY", "B"}, Patterns: Lines{"x,y", "z"}}, s.Redact)
}

func TestLaterSourcesWin(t *testing.T) {
	alone(t, "task_queue: of-the-file\ncalls: 2\nenvironment: of-the-file\n")
	t.Setenv("PASSBOOK_TASK_QUEUE", "of-the-variable")
	t.Setenv("PASSBOOK_CALLS", "3")
	s := must(Load(flags(t, "--task-queue", "of-the-flag")))(t)
	require.Equal(t, "of-the-flag", s.TaskQueue)
	require.Equal(t, 3, s.Calls)
	require.Equal(t, "of-the-file", s.Environment)
}

func TestDefaultStoreEscapesItsPath(t *testing.T) {
	alone(t, "")
	dir := filepath.Join(t.TempDir(), "a #1, 50% of? it")
	t.Setenv("PASSBOOK_STATE_DIR", dir)
	s := must(Load(flags(t)))(t)
	u := must(url.Parse(s.Store))(t)
	require.Equal(t, url.URL{Scheme: "file", Path: filepath.Join(dir, "store"), RawPath: u.RawPath}, *u)
}

func TestDefaults(t *testing.T) {
	alone(t, "")
	s := must(Load(flags(t)))(t)
	require.Equal(t, filepath.Join(os.Getenv("XDG_STATE_HOME"), "passbook"), s.StateDir)
	require.Equal(t, "file://"+s.StateDir+"/store", s.Store)
	require.True(t, s.LocalStore())
	require.Equal(t, filepath.Join(s.StateDir, "scratch"), s.Scratch())
	require.Equal(t, filepath.Join(s.StateDir, "runs"), s.RunRoot)
	require.Equal(t, 10*time.Second, s.Heartbeat)
	t.Setenv("XDG_STATE_HOME", "")
	require.True(t, strings.HasPrefix(stateHome(), os.Getenv("HOME")), stateHome())
}

func TestLoadReportsEveryError(t *testing.T) {
	tests := []struct {
		name, file string
		args       []string
		message    []string
	}{
		{"unknown key", "task_que: x\n", nil, []string{"settings:", "task_que"}},
		{"unknown key in a part", "redact: {enw: [x]}\n", nil, []string{"settings:", "enw"}},
		{"wrong types, all at once", "calls: many\nheartbeat: soon\n", nil, []string{"calls", "heartbeat"}},
		{"out of range, all at once", "calls: 0\nheartbeat: 5ms\n", nil,
			[]string{"calls is 0; it must be at least 1", "heartbeat is 5ms; it must be at least 1s"}},
		{"budgets", "policy: {budget_usd: 1e308}\n", nil, []string{"settings: policy.budget_usd is "}},
		{"an infinite budget", "policy: {budget_usd: .inf}\n", nil, []string{"settings: policy.budget_usd is "}},
		{"no budget", "policy: {budget_usd: .nan}\n", nil, []string{"settings: policy.budget_usd is "}},
		{"a negative budget", "policy: {budget_usd: -1}\n", nil, []string{"settings: policy.budget_usd is "}},
		{"cost of a day", "per_day: {usd: .nan}\n", nil, []string{"settings: per_day."}},
		{"tokens of a day", "per_day: {tokens: -1}\n", nil, []string{"settings: per_day."}},
		{"calls of a day", "per_day: {calls: -2}\n", nil, []string{"settings: per_day."}},
		{"negative calls", "at_once: {host: -1}\n", nil,
			[]string{"settings: at_once.host and at_once.account must be at least 0"}},
		{"an account without a number", "at_once: {accounts: [work]}\n", nil,
			[]string{`settings: at_once.accounts has "work"; write NAME=NUMBER`}},
		{"an account with a negative number", "at_once: {accounts: [a=-1]}\n", nil,
			[]string{`settings: at_once.accounts has "a=-1"; write NAME=NUMBER`}},
		{"an account with a word", "at_once: {accounts: [a=two]}\n", nil,
			[]string{`settings: at_once.accounts has "a=two"; write NAME=NUMBER`}},
		{"no YAML", "calls: [\n", nil, []string{"settings file", "config.yaml"}},
		{"named file that is missing", "", []string{"--settings", "/gone/settings.yaml"},
			[]string{"/gone/settings.yaml"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			alone(t, tt.file)
			_, err := Load(flags(t, tt.args...))
			require.Error(t, err)
			for _, s := range tt.message {
				require.ErrorContains(t, err, s)
			}
		})
	}
}

func TestSettingsFileCanBeNamed(t *testing.T) {
	alone(t, "task_queue: usual\n")
	path := filepath.Join(t.TempDir(), "mine.yaml")
	require.NoError(t, os.WriteFile(path, []byte("task_queue: mine\n"), 0o644))
	s := must(Load(flags(t, "--settings", path)))(t)
	require.Equal(t, "mine", s.TaskQueue)
	t.Setenv("PASSBOOK_SETTINGS", path)
	s = must(Load(flags(t)))(t)
	require.Equal(t, "mine", s.TaskQueue)
}

// TestFlagOfCommandIsNotASetting: a command may have a flag of the same name.
func TestFlagOfCommandIsNotASetting(t *testing.T) {
	alone(t, "")
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	fs.Int("calls", 0, "of the command")
	require.NoError(t, fs.Parse([]string{"--calls", "-1"}))
	s := must(Load(fs))(t)
	require.Equal(t, 4, s.Calls)
}
