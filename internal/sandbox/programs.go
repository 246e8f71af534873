package sandbox

import "os"

// Paths lists what a program uses below the home directory. Everything else there is hidden: writes go to a private
// home that is removed with the call.
type Paths struct {
	Program string   // base name of the program; empty: every call
	Tool    string   // if a call finds it in PATH, folders of Write are created without a parent too
	Read    []string // visible, read-only
	Write   []string // visible and writable; a trailing slash: created if its parent exists
	Strict  bool     // also in mode strict

	// Copies are files of which a call sees a part, in a private copy: changes are lost.
	Copies map[string]part
	// Shared is a folder with the conversations of all working directories, which a call sees with its own only:
	// [Folder] of it on the host. It is created as those of Write are.
	Shared string
	// Root is a file in which the program names the working directory of a folder with conversations.
	Root string
}

// Programs is the table of all programs. Files that another program of the user executes, such as hooks, skills and
// settings, are read-only or copies: a call must not change what runs outside of its sandbox. Logins are writable,
// because a refreshed token replaces the previous one. Servers of MCP, whose settings contain tokens, and conversations
// and entries of other projects are hidden.
func Programs() []Paths {
	return []Paths{
		{
			Program: "claude", Strict: true,
			Read: []string{".claude/settings.json", ".claude/settings.local.json", ".claude/CLAUDE.md", ".claude/agents",
				".claude/commands", ".claude/skills", ".claude/plugins", ".claude/hooks", ".claude/output-styles"},
			Write:  []string{".claude/.credentials.json", ".claude/projects/{work}/"},
			Copies: map[string]part{".claude.json": claudeState},
		},
		{
			Program: "codex", Strict: true,
			Read:   []string{".codex/AGENTS.md", ".codex/prompts", ".codex/skills", ".codex/rules"},
			Write:  []string{".codex/auth.json"},
			Copies: map[string]part{".codex/config.toml": codexSettings},
			Shared: ".codex/sessions",
		},
		{
			Program: "gemini", Strict: true,
			Read: []string{".gemini/GEMINI.md", ".gemini/commands", ".gemini/extensions", ".gemini/.env",
				".gemini/installation_id"},
			Write: []string{".gemini/oauth_creds.json", ".gemini/google_accounts.json", ".gemini/tmp/{folder}/"},
			Copies: map[string]part{".gemini/settings.json": geminiSettings,
				".gemini/trustedFolders.json": geminiTrust},
			Root: ".gemini/tmp/{folder}/" + RootFile,
		},
		{ // tools and their settings
			Read: []string{".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes",
				".local/bin", ".local/lib", ".local/share/claude", ".local/share/fnm", ".local/share/mise",
				".local/share/uv", ".local/share/pnpm", ".nvm", ".volta", ".fnm", ".asdf", ".pyenv", ".rbenv",
				".rustup", ".cargo/bin", ".cargo/env", ".sdkman", ".bun", ".deno", ".npm-global", "bin", "go/bin", "sdk",
				".cache/ms-playwright", ".cache/puppeteer", ".gradle/wrapper", ".m2/wrapper"},
		},
		{ // build caches
			Write: []string{".npm", ".cache/yarn", ".cache/pnpm", ".local/share/pnpm/store", ".cache/pip", ".cache/uv",
				".cache/ccache", ".cache/golangci-lint"},
		},
		// caches that hold the dependencies themselves: the setup of a workspace leaves them there for later calls
		{Tool: "go", Write: []string{".cache/go-build/", "go/pkg/mod/", "go/pkg/sumdb/"}},
		{Tool: "cargo", Write: []string{".cargo/registry/", ".cargo/git/"}},
		{Tool: "java", Write: []string{".m2/repository/", ".gradle/caches/"}},
	}
}

// cacheVariables name build caches in another place.
func cacheVariables() []string {
	return []string{"GOCACHE", "GOMODCACHE", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR", "CCACHE_DIR"}
}

// readVariables name files that a program reads: certificates.
func readVariables() []string {
	return []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"}
}

// system lists the directories and files of the operating system, which are read-only. None contains the socket of a
// service: a call without a network could resolve names or build there.
func system() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt",
		"/nix/store", "/nix/var/nix/profiles", "/gnu/store", "/snap", "/run/systemd/resolve/resolv.conf",
		"/run/systemd/resolve/stub-resolv.conf", "/run/current-system", "/home/linuxbrew"}
}

// masked lists what is hidden in them: the settings of the service, which its user can read, and what only root could
// read.
func masked() []string {
	service := []string{"/etc/passbook"}
	if os.Geteuid() != 0 {
		return service
	}
	return append(service, "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssh",
		"/etc/ssl/private", "/etc/sudoers", "/etc/sudoers.d")
}

// RootFile is where gemini names the working directory of a folder of conversations.
const RootFile = ".project_root"

// Folder returns the name of the folder in which codex and gemini store the conversations of a working directory.
func Folder(work string) string { return "passbook" + unusual.ReplaceAllString(work, "-") }
