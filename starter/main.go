// Command starter runs pipelines and shows, pauses and resumes them. Called as worker, it runs a worker.
package main

import (
	"os"
	"path/filepath"

	"github.com/passbook-run/passbook/internal/program"
)

func main() {
	os.Exit(program.Main(filepath.Base(os.Args[0]), os.Args[1:]))
}
