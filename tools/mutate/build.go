package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// helpers of Passbook are programs that tests start.
var helpers = []string{"./starter", "./worker", "./internal/supervisor/passbook-call", "./test/browser",
	"./test/e2e/victim", "./test/e2e/agent"}

// program is a test program: all tests of one package.
type program struct {
	folder string // of the package
	path   string
}

// build compiles the test programs of all targets, with all mutants, and the programs that tests start.
func build(ctx context.Context, code *source, files map[string][]byte, work string) ([]program, error) {
	replace := map[string]string{}
	for path, text := range files {
		to := filepath.Join(work, "overlay", path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return nil, err
		}
		replace[filepath.Join(code.root, path)] = to
	}
	overlay := filepath.Join(work, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(overlay, text, 0o644); err != nil {
		return nil, err
	}
	compile := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = code.root
		cmd.Env = append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	if len(code.helpers) > 0 {
		args := []string{"build", "-buildvcs=false", "-o", filepath.Join(work, "programs") + "/"}
		if code.startsPrograms() {
			args = append(args, "-overlay", overlay)
		}
		if err := compile(append(args, code.helpers...)...); err != nil {
			return nil, err
		}
	}
	var programs []program
	for _, folder := range code.testFolders() {
		p := program{folder: folder, path: filepath.Join(work, strings.ReplaceAll(folder, "/", "-")+".test")}
		if err := compile("test", "-c", "-vet", "off", "-overlay", overlay, "-o", p.path, "./"+folder); err != nil {
			return nil, err
		}
		if _, err := os.Stat(p.path); err == nil { // a package without tests has no program
			programs = append(programs, p)
		}
	}
	return programs, nil
}

// startsPrograms is true if the programs that tests start need the mutants too.
func (s *source) startsPrograms() bool {
	return slices.ContainsFunc(s.testFolders(), func(folder string) bool { return strings.HasPrefix(folder, "test/") })
}

func (s *source) testFolders() []string {
	var all []string
	for _, t := range s.targets {
		all = append(all, t.tests...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
