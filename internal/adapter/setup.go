package adapter

import "path"

// Setup is how the program of an adapter is installed, and how its user logs in.
type Setup struct {
	Install string
	Login   []string // a free command that exits with 0 if the user is logged in; nil: there is none
	SignIn  string   // what to do if not
	Keys    []string // variables that replace a login
	File    string   // of a login, below the home; empty: not known
}

func claudeSetup() Setup {
	return Setup{
		Install: "npm install -g @anthropic-ai/claude-code", Login: []string{"auth", "status"},
		SignIn: "claude auth login, or set ANTHROPIC_API_KEY",
		Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK",
			"CLAUDE_CODE_USE_VERTEX"},
	}
}

func codexSetup() Setup {
	return Setup{Install: "npm install -g @openai/codex", Login: []string{"login", "status"}, SignIn: "codex login",
		Keys: []string{"CODEX_API_KEY"}}
}

func geminiSetup() Setup {
	return Setup{Install: "npm install -g @google/gemini-cli", SignIn: "gemini, or set GEMINI_API_KEY",
		Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, File: ".gemini/oauth_creds.json"}
}

// Programs lists the programs that adapters are made for.
func Programs() []string {
	var names []string
	for _, a := range table {
		if a.Program != "" && (len(names) == 0 || names[len(names)-1] != a.Program) {
			names = append(names, a.Program)
		}
	}
	return names
}

// SetupOf returns the setup of a program by its name or path; ok is false if no adapter is made for it.
func SetupOf(program string) (s Setup, ok bool) {
	for _, a := range table {
		if a.Program != "" && a.Program == path.Base(program) {
			return a.Setup(), true
		}
	}
	return s, false
}
