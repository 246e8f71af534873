package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

const pendingFile = "pending.txt"

// pending is the list of paths that are not checked yet: a file each line, or a folder that ends in a slash.
type pending struct {
	path  string
	head  []string // comments
	lines []string
}

func readPending(path string) (*pending, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read paths that are not checked yet: %w", err)
	}
	p := &pending{path: path}
	for line := range strings.Lines(string(text)) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "#"):
			p.head = append(p.head, line)
		case line != "":
			p.lines = append(p.lines, line)
		}
	}
	return p, nil
}

func (p *pending) has(path string) bool {
	return slices.ContainsFunc(p.lines, func(line string) bool { return line == path || within(line, path) })
}

func within(line, path string) bool {
	return strings.HasSuffix(line, "/") && strings.HasPrefix(path, line)
}

// prune rewrites the list without the paths that have no finding.
func (p *pending) prune(findings []finding) error {
	left := slices.DeleteFunc(slices.Clone(p.lines), func(line string) bool {
		return !slices.ContainsFunc(findings, func(f finding) bool { return f.Path == line || within(line, f.Path) })
	})
	text := strings.Join(append(slices.Clone(p.head), left...), "\n") + "\n"
	if err := os.WriteFile(p.path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write paths that are not checked yet: %w", err)
	}
	return nil
}
