package testenv

import (
	"os"
	"path/filepath"
)

// asks is a pipeline that asks once, without an agent that costs anything.
const asks = `pipeline: asks
artifact: {file: notes.md, seed: seed.md}
agents: {writer: {run: [echo, hello], reply: text}}
roles: {writer: {prompt: p.md, gives: report, agent: writer}}
stages:
  - name: plan
    steps: [{role: writer}, {ask: 'Is this right?'}]
  - name: work
    steps: [{role: writer}]
`

// WriteAsks writes a pipeline that asks once into a folder. It returns the path of the definition.
func WriteAsks(folder string) (string, error) {
	for name, text := range map[string]string{"asks.yaml": asks, "p.md": "Do it.\n", "seed.md": "Notes\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, "asks.yaml"), nil
}
