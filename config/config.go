// Package config holds the settings of starter and worker: a file, PASSBOOK_* variables, flags; later ones win. The connection to Temporal is
// not among them: that is envconfig's, shared with the temporal CLI (TEMPORAL_ADDRESS, TEMPORAL_PROFILE, temporal.toml).
package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/passbook-run/passbook/run"
)

// Settings are all of them. The names are those of the file; the variable of a setting is PASSBOOK_ and its name in capitals.
type Settings struct {
	StateDir      string        `mapstructure:"state_dir"`      // records of background processes, database, scratch, default store
	RunRoot       string        `mapstructure:"run_root"`       // where runs without --output-dir go
	Store         string        `mapstructure:"store"`          // bucket URL; empty: file:// in the state directory
	TaskQueue     string        `mapstructure:"task_queue"`     // base name of the queues
	Calls         int           `mapstructure:"calls"`          // passes at the same time in one worker
	Browser       string        `mapstructure:"browser"`        // path of Chromium; empty: looked for
	Heartbeat     time.Duration `mapstructure:"heartbeat"`      // a worker is lost after this long without a sign
	Recheck       time.Duration `mapstructure:"recheck"`        // how often a worker checks what its host has: agents, stores, browser
	Idle          time.Duration `mapstructure:"idle"`           // a background worker stops after this long without work
	Keeper        bool          `mapstructure:"keeper"`         // a keeper restarts the background worker and the embedded server
	Drain         time.Duration `mapstructure:"drain"`          // a worker that is told to stop waits this long for its calls; 0: it hands them over
	ContinueAfter int           `mapstructure:"continue_after"` // steps in one execution; 0: when the server suggests it
	Server        string        `mapstructure:"server"`         // embedded server's binary; empty: built when first needed
	Environment   string        `mapstructure:"environment"`    // a name for meta.json: production, laptop

	Concurrency Concurrency `mapstructure:"concurrency"` // how much of each kind of work one worker does at once

	Policy Policy `mapstructure:"policy"` // what runs are allowed on this host
	Redact Redact `mapstructure:"redact"`
	Codec  Codec  `mapstructure:"codec"`
}

// Redact says what is hidden in what is written about the work, besides keys in their well-known forms.
type Redact struct {
	Env      Words `mapstructure:"env"`      // names of variables whose values are secrets; * stands for any characters
	Patterns Lines `mapstructure:"patterns"` // RE2; the first group is the secret, or the whole match
}

// Codec says how Temporal's payloads are encrypted. Without a key they are not.
type Codec struct {
	Key      string `mapstructure:"key"`      // id of the key that encrypts
	Keys     Words  `mapstructure:"keys"`     // id=env:NAME or id=file:PATH; retired ones still read
	Endpoint string `mapstructure:"endpoint"` // URL of `starter codec serve`, as browsers reach it: the embedded server's Web UI is told
	Token    string `mapstructure:"token"`    // env:NAME or file:PATH: what the endpoint wants to hear; empty: nothing
}

// Words is a list that a variable or a flag gives with commas between.
type Words []string

// Lines is a list that a variable or a flag gives with one a line.
type Lines []string

// Policy is what runs are allowed. It is looked at when a run starts, goes on in a new epoch, or is forked.
type Policy struct {
	Agents Words   `mapstructure:"agents"`     // programs that runs may call; empty: any
	Env    Words   `mapstructure:"env"`        // environment variables that agents may see; empty: any
	Budget float64 `mapstructure:"budget_usd"` // most that one run may spend, in USD; 0: no limit
	Forbid Words   `mapstructure:"forbid"`     // force, and what a fork may not change: agent, model, budget, pipeline, task
}

const envPrefix = "passbook"

// defaults are also the list of settings that exist.
func defaults() map[string]any {
	all := map[string]any{
		"state_dir": stateHome(), "run_root": "runs", "store": "", "task_queue": "passbook", "calls": 4, "browser": "",
		"heartbeat": 10 * time.Second, "recheck": 10 * time.Second, "idle": time.Minute, "keeper": true, "drain": time.Duration(0), "continue_after": 0, "server": "", "environment": "local",
		"policy.agents": "", "policy.env": "", "policy.budget_usd": 0.0, "policy.forbid": "",
		"redact.env": []string{"*_TOKEN", "*_KEY", "*_SECRET", "*PASSWORD"}, "redact.patterns": []string{},
		"codec.key": "", "codec.keys": []string{}, "codec.endpoint": "", "codec.token": "",
	}
	for _, b := range Bounds() {
		all[b.Setting] = 0
	}
	return all
}

// stateHome is where the operating system keeps state of this user.
func stateHome() string {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "passbook")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "passbook")
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "Passbook")
	}
	return filepath.Join(home, ".local", "state", "passbook")
}

// Flags adds the settings' flags: --state-dir for state_dir, and --settings for the file.
func Flags(fs *pflag.FlagSet) {
	fs.String("settings", "", "settings file (default: passbook/config.yaml in the user's configuration folder)")
	for _, name := range names() {
		fs.String(flagName(name), "", "setting "+name)
		if err := fs.MarkHidden(flagName(name)); err != nil {
			panic(err) // the flag was defined in the line above
		}
	}
}

func names() []string {
	var out []string
	for name := range defaults() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

var dashes = strings.NewReplacer("_", "-", ".", "-")

func flagName(setting string) string { return dashes.Replace(setting) }

// variable is the name of a setting's variable.
func variable(setting string) string {
	return strings.ToUpper(envPrefix + "_" + strings.ReplaceAll(setting, ".", "_"))
}

// Load reads the settings. Unknown names in the file and values of a wrong type are errors, all at once.
func Load(fs *pflag.FlagSet) (Settings, error) {
	v, err := read(fs)
	if err != nil {
		return Settings{}, err
	}
	return decode(v)
}

// read collects the values from wherever they are.
func read(fs *pflag.FlagSet) (*viper.Viper, error) {
	v := viper.New()
	for name, value := range defaults() {
		v.SetDefault(name, value)
	}
	v.SetEnvPrefix(envPrefix)
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	if err := readFile(v, fs); err != nil {
		return nil, err
	}
	for name, value := range given(fs) {
		v.Set(name, value)
	}
	return v, nil
}

// given are the settings that flags give.
func given(fs *pflag.FlagSet) map[string]string {
	out := map[string]string{}
	if fs == nil {
		return out
	}
	for _, name := range names() {
		if f := fs.Lookup(flagName(name)); f != nil && f.Changed {
			out[name] = f.Value.String()
		}
	}
	return out
}

func decode(v *viper.Viper) (Settings, error) {
	var s Settings
	if err := v.UnmarshalExact(&s, viper.DecodeHook(mapstructure.ComposeDecodeHookFunc(mapstructure.StringToTimeDurationHookFunc(), splitLists))); err != nil {
		return s, fmt.Errorf("settings: %w", err)
	}
	return s.complete()
}

// splitLists reads the lists that come as one text.
func splitLists(_, to reflect.Type, data any) (any, error) {
	text, ok := data.(string)
	if !ok {
		return data, nil
	}
	sep := ","
	switch to {
	case reflect.TypeFor[Lines]():
		sep = "\n"
	case reflect.TypeFor[Words]():
	default:
		return data, nil
	}
	out := []string{}
	for _, part := range strings.Split(text, sep) {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out, nil
}

// File gives the settings file: the named one, or the one in the user's configuration folder, which need not be there. Empty: there can be none.
func File(fs *pflag.FlagSet) (path string, named bool) {
	if fs != nil {
		path, _ = fs.GetString("settings")
	}
	if path == "" {
		path = os.Getenv("PASSBOOK_SETTINGS")
	}
	if path != "" {
		return path, true
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", false // without a home there is no file, and that is fine
	}
	return filepath.Join(dir, "passbook", "config.yaml"), false
}

func readFile(v *viper.Viper, fs *pflag.FlagSet) error {
	path, explicit := File(fs)
	if path == "" {
		return nil
	}
	v.SetConfigFile(path)
	err := v.ReadInConfig()
	if err == nil || (!explicit && errors.Is(err, os.ErrNotExist)) {
		return nil
	}
	return fmt.Errorf("settings file %s: %w", path, err)
}

func (s Settings) complete() (Settings, error) {
	for _, p := range []*string{&s.StateDir, &s.RunRoot} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return s, err
		}
		*p = abs
	}
	if s.Store == "" {
		folder := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(s.StateDir, "store"))}
		s.Store = folder.String() // the path may have characters that end one in a URL
	}
	var errs []error
	if s.Calls < 1 {
		errs = append(errs, fmt.Errorf("settings: calls is %d; it must be at least 1", s.Calls))
	}
	if s.Heartbeat < time.Second {
		errs = append(errs, fmt.Errorf("settings: heartbeat is %s; it must be at least 1s", s.Heartbeat))
	}
	if s.Recheck < 100*time.Millisecond {
		errs = append(errs, fmt.Errorf("settings: recheck is %s; it must be at least 100ms", s.Recheck))
	}
	if s.Drain < 0 {
		errs = append(errs, fmt.Errorf("settings: drain is %s; it must be at least 0s", s.Drain))
	}
	if !run.ValidBudget(s.Policy.Budget) {
		errs = append(errs, fmt.Errorf("settings: policy.budget_usd is %g; it must be a number from 0 to %.0f", s.Policy.Budget, run.MaxBudgetUSD))
	}
	errs = append(errs, s.Concurrency.check())
	s.Concurrency = s.Concurrency.On(ThisHost(s.StateDir))
	return s, errors.Join(errs...)
}

// Scratch is where agents work.
func (s Settings) Scratch() string { return filepath.Join(s.StateDir, "scratch") }

// LocalStore says that the store is a folder of this host, so all work on a run stays here.
func (s Settings) LocalStore() bool { return strings.HasPrefix(s.Store, "file://") }
