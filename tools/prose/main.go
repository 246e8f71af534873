// Prose checks the texts of the project with vale and the word list in tools/vale: pages, the generated help, and the
// comments and string literals of Go code. It prints PATH:LINE:COLUMN of each finding and exits with 1 if there is one.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", ".", "folder to check")
	tools := flag.String("tools", "tools/vale", "folder with the vale module and its word list")
	flag.Parse()
	found, err := check(*root, *tools, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	if found > 0 {
		fmt.Fprintf(os.Stderr, "prose: %d findings; the word list is in tools/vale/styles/Passbook\n", found)
		os.Exit(1)
	}
}

// check prints the findings in the checked files of a folder and returns their number.
func check(root, tools string, out io.Writer) (int, error) {
	paths, err := texts(root)
	if err != nil {
		return 0, err
	}
	findings, err := lint(root, tools, paths)
	if err != nil {
		return 0, err
	}
	for _, f := range findings {
		fmt.Fprintln(out, f)
	}
	return len(findings), nil
}

// skipped are folders without text of ours.
var skipped = []string{".git", ".cache", "bin", "runs", "testdata", "node_modules"}

// texts lists the files of a folder that hold text for readers, by slash-separated path.
func texts(root string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && slices.Contains(skipped, e.Name()):
			return filepath.SkipDir
		case e.IsDir():
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); isText(name) {
			paths = append(paths, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list texts in %s: %w", root, err)
	}
	return paths, nil
}

// isText accepts code and pages. Most Markdown files of examples are prompts and work of agents.
func isText(name string) bool {
	switch filepath.Ext(name) {
	case ".go":
		return true
	case ".md":
		deep := strings.Count(name, "/") > 2
		return !strings.HasPrefix(name, "examples/") || filepath.Base(name) == "README.md" && !deep
	}
	return false
}

// lint runs vale on copies of the files in which everything but text is blank, so positions stay the same.
func lint(root, tools string, paths []string) (findings []finding, err error) {
	dir, err := os.MkdirTemp("", "prose-")
	if err != nil {
		return nil, fmt.Errorf("check texts: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, p := range paths {
		text, err := os.ReadFile(filepath.Join(root, p))
		if err != nil {
			return nil, fmt.Errorf("check texts: %w", err)
		}
		to := filepath.Join(dir, p)
		if filepath.Ext(p) == ".go" {
			if text, err = blankCode(p, text); err != nil {
				return nil, err
			}
			to += plain
		}
		if err := copyTo(to, text); err != nil {
			return nil, err
		}
	}
	return runVale(tools, dir)
}

func copyTo(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("copy text: %w", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("copy text: %w", err)
	}
	return nil
}
