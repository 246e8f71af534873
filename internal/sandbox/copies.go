package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// part returns the part of a settings file that a call in a working directory sees.
type part func(text []byte, work string) ([]byte, error)

// copy writes the part of a file of the home, if it exists, into the home of the call.
func (b *binds) copy(name string, of part) error {
	text, err := os.ReadFile(filepath.Join(b.home, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		text, err = of(text, b.call.Work)
	}
	to := filepath.Join(b.call.Delivery, homeFolder, name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// object is a JSON object whose other values stay as they are written.
type object = map[string]json.RawMessage

// edit changes a JSON object. An empty text is an empty object.
func edit(text []byte, change func(object) error) ([]byte, error) {
	o := object{}
	if text = bytes.TrimSpace(text); len(text) > 0 {
		if err := json.Unmarshal(text, &o); err != nil {
			return nil, err
		}
	}
	if err := change(o); err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

func withoutServers(o object) error {
	delete(o, "mcpServers")
	return nil
}

// claudeState is .claude.json without MCP servers and the entries of other projects.
func claudeState(text []byte, work string) ([]byte, error) {
	return edit(text, func(o object) error {
		projects := object{}
		if raw := o["projects"]; raw != nil {
			if err := json.Unmarshal(raw, &projects); err != nil {
				return err
			}
		}
		own := object{}
		if raw := projects[work]; raw != nil {
			entry, err := edit(raw, withoutServers)
			if err != nil {
				return err
			}
			own[work] = entry
		}
		raw, err := json.Marshal(own)
		o["projects"] = raw
		return errors.Join(err, withoutServers(o))
	})
}

// codexSettings is config.toml without MCP servers and the entries of other projects.
func codexSettings(text []byte, work string) ([]byte, error) {
	var all map[string]any
	if err := toml.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	delete(all, "mcp_servers")
	if projects, ok := all["projects"].(map[string]any); ok {
		for dir := range projects {
			if dir != work {
				delete(projects, dir)
			}
		}
	}
	return toml.Marshal(all)
}

// geminiSettings is settings.json without MCP servers and comments.
func geminiSettings(text []byte, _ string) ([]byte, error) { return edit(plain(text), withoutServers) }

// geminiTrust is trustedFolders.json with the folders that contain the working directory.
func geminiTrust(text []byte, work string) ([]byte, error) {
	return edit(plain(text), func(o object) error {
		for dir := range o {
			if !within(work, dir) {
				delete(o, dir)
			}
		}
		return nil
	})
}

var commented = lazyregexp.New(`(?s)"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/`)

// plain removes the comments of a JSON text.
func plain(text []byte) []byte {
	return commented.ReplaceAllFunc(text, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return nil
	})
}
