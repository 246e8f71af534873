// Package realcli installs programs from npm at fixed versions: the command lines of model providers (claude, codex and
// gemini), which it points at a model API on loopback, and the inspector of MCP. Only tests and `make agents` use it.
package realcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/passbook-run/passbook/test/modelapi"
)

// CLI is the command line of a provider, or another program.
type CLI struct {
	Name      string // of its program
	Package   string // npm
	Version   string
	integrity string // of the package, as npm records it

	// program is a glob of its program below the folder of the installation.
	program string
	// script is set if node runs the program.
	script bool
	// API starts the API that it uses.
	API func(turns ...modelapi.Turn) *modelapi.API
	// Environ are the variables that point it at an API, with a key and few retries.
	Environ func(url string) []string
	// files of its home, by name; URL stands for the address of the API.
	files map[string]string
}

// All returns the command lines at the versions that are tested.
func All() []CLI { return []CLI{Claude(), Codex(), Gemini()} }

// Claude is Claude Code.
func Claude() CLI {
	return CLI{
		Name: "claude", Package: "@anthropic-ai/claude-code", Version: "2.1.330",
		integrity: "sha512-KQMl6kixLMGHRCDUhkUPebuBhw13MpxlH3+17QzHQx40FNVd1z3uFKUSqQXB5zF9vLQGcpoC/8wWe5R35lsWvQ==",
		program:   "@anthropic-ai/claude-code-*/claude", API: modelapi.NewAnthropic,
		Environ: func(url string) []string {
			return []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=sk-test",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=1"}
		},
		files: map[string]string{".claude/settings.json": "{}"},
	}
}

// Codex is the Codex CLI.
func Codex() CLI {
	return CLI{
		Name: "codex", Package: "@openai/codex", Version: "0.169.0",
		integrity: "sha512-KhzYlkKPxoNssR8CEm45IjqnFWn7UtlF4CiD3tOJPea51xBs7MaHy0UQG9GSbCqk6Lrjn5QdJDV0QD1/FgWlGw==",
		program:   "@openai/codex-*/vendor/*/bin/codex", API: modelapi.NewOpenAI,
		Environ: func(string) []string { return []string{"CODEX_API_KEY=sk-test"} },
		files: map[string]string{".codex/config.toml": `model = "gpt-5.5"
model_provider = "loopback"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.loopback]
name = "loopback"
base_url = "URL/v1"
env_key = "CODEX_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 1
`},
	}
}

// Gemini is the Gemini CLI.
func Gemini() CLI {
	return CLI{
		Name: "gemini", Package: "@google/gemini-cli", Version: "0.61.0",
		integrity: "sha512-dbQ9A0qBtFJNi6XBkHvfZ6Azpn6PNgH/P8h2MZ67RLlX8hSAVjup39CRWqdRxZv7YXIuhrFaytr8y0jKnkoxnQ==",
		program:   "@google/gemini-cli/bundle/gemini.js", script: true, API: modelapi.NewGemini,
		Environ: func(url string) []string {
			return []string{"GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_API_KEY=test", "GEMINI_CLI_NO_RELAUNCH=true"}
		},
		files: map[string]string{".gemini/settings.json": `{
 "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
 "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": 1},
 "privacy": {"usageStatisticsEnabled": false}
}`},
	}
}

// Inspector is the MCP inspector, which has a CLI mode. Newer ones need Node.js 22.
func Inspector() CLI {
	return CLI{
		Name: "mcp-inspector", Package: "@modelcontextprotocol/inspector", Version: "0.17.5",
		integrity: "sha512-4IevkwKP1tvhxO5m48v21PMaxkGvMSHwbTSCW/ZRkYnqJidQDu9eoWaXKa7Q5347767bhi0HAjFfOiEt/r6jQQ==",
		program:   "@modelcontextprotocol/inspector/cli/build/cli.js", script: true,
	}
}

// folder returns where a version is installed, in the user's cache.
func (c CLI) folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache: %w", err)
	}
	return filepath.Join(cache, "passbook", "agents", filepath.Base(c.Package)+"-"+c.Version), nil
}

// Argv returns the command of the installed program. The error is [os.ErrNotExist] if it is not installed.
func (c CLI) Argv() ([]string, error) {
	dir, err := c.folder()
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(dir, "node_modules", c.program))
	if err != nil {
		return nil, fmt.Errorf("find %s in %s: %w", c.Name, dir, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("find %s %s in %s: %w; run: make agents", c.Name, c.Version, dir, os.ErrNotExist)
	}
	if !c.script {
		return found[:1], nil
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("find node for %s: %w", c.Name, err)
	}
	return []string{node, found[0]}, nil
}

// Install installs the program without install scripts, unless it is there. It is in its place when it is complete.
func (c CLI) Install(ctx context.Context) error {
	if _, err := c.Argv(); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("install %s: %w; install Node.js 20 or newer", c.Name, err)
	}
	dir, err := c.folder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("install %s: %w", c.Name, err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".installing-")
	if err != nil {
		return fmt.Errorf("install %s: %w", c.Name, err)
	}
	out, err := exec.CommandContext(ctx, npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", temp,
		c.Package+"@"+c.Version).CombinedOutput()
	if err == nil {
		err = c.genuine(temp)
	}
	if err == nil {
		err = os.RemoveAll(dir) // incomplete: its program is missing
	}
	if err == nil {
		err = os.Rename(temp, dir)
	}
	if err != nil {
		if _, found := c.Argv(); found == nil { // another process was faster
			return os.RemoveAll(temp)
		}
		return errors.Join(fmt.Errorf("install %s %s with npm: %w: %s", c.Package, c.Version, err, out), os.RemoveAll(temp))
	}
	if _, err := c.Argv(); err != nil {
		return fmt.Errorf("%s has no program for %s/%s: %w", c.Package, runtime.GOOS, runtime.GOARCH, err)
	}
	return nil
}

// genuine reports that npm has installed another package of that name and version.
func (c CLI) genuine(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "node_modules", ".package-lock.json"))
	if err != nil {
		return err
	}
	var lock struct {
		Packages map[string]struct{ Integrity string }
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		return fmt.Errorf("read what npm has installed: %w", err)
	}
	if got := lock.Packages["node_modules/"+c.Package].Integrity; got != c.integrity {
		return fmt.Errorf("the integrity of %s is %q, want %s", c.Package, got, c.integrity)
	}
	return nil
}

// WriteHome writes the configuration that points the program at an API into a home.
func (c CLI) WriteHome(home, url string) error {
	for name, content := range c.files {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("write the home of %s: %w", c.Name, err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(content, "URL", url)), 0o600); err != nil {
			return fmt.Errorf("write the home of %s: %w", c.Name, err)
		}
	}
	return nil
}
