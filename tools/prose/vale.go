package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// plain is added to the names of the copies of code, so that vale reads them as plain text.
const plain = ".txt"

// finding is a text that breaks a rule.
type finding struct {
	Path    string
	Line    int
	Column  int
	Rule    string
	Message string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s [%s]", f.Path, f.Line, f.Column, f.Message, f.Rule)
}

// runVale checks the files of a folder; paths of findings are below that folder.
func runVale(tools, dir string) ([]finding, error) {
	tools, err := filepath.Abs(tools)
	if err != nil {
		return nil, fmt.Errorf("run vale: %w", err)
	}
	var out, problem bytes.Buffer
	cmd := exec.Command("go", "tool", "vale", "--config="+filepath.Join(tools, "vale.ini"), "--output=JSON",
		"--no-exit", dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr = tools, &out, &problem
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run vale: %w: %s%s", err, problem.String(), out.String())
	}
	var alerts map[string][]struct {
		Line    int
		Span    []int
		Check   string
		Message string
	}
	if err := json.Unmarshal(out.Bytes(), &alerts); err != nil {
		return nil, fmt.Errorf("run vale: read its output: %w: %s", err, out.String())
	}
	var findings []finding
	for path, list := range alerts {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return nil, fmt.Errorf("run vale: %w", err)
		}
		for _, a := range list {
			name := strings.TrimSuffix(filepath.ToSlash(name), plain)
			// a match over two lines holds the space between them
			message := strings.Join(strings.Fields(a.Message), " ")
			findings = append(findings, finding{name, a.Line, a.Span[0], a.Check, message})
		}
	}
	slices.SortFunc(findings, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return findings, nil
}
