package scaffold

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// Lock files of the package managers.
var (
	npmLocks  = []string{"package-lock.json", "npm-shrinkwrap.json"}
	pnpmLocks = []string{"pnpm-lock.yaml"}
	yarnLocks = []string{"yarn.lock"}
)

func npm(p place) (test, setup string) {
	return node(p, "npm", npmLocks, func(place) string { return "npm ci" })
}

func pnpm(p place) (test, setup string) {
	return node(p, "pnpm", pnpmLocks, func(place) string { return "pnpm install --frozen-lockfile" })
}

func yarn(p place) (test, setup string) {
	return node(p, "yarn", yarnLocks, func(locked place) string {
		if locked.first(".yarnrc.yml") != "" || strings.Contains(locked.text("yarn.lock"), "\n__metadata:") {
			return "yarn install --immutable"
		}
		return "yarn install --frozen-lockfile" // of version 1
	})
}

// manifest is what a package.json describes.
type manifest struct {
	PackageManager  string
	Scripts         map[string]string
	Dependencies    map[string]any
	DevDependencies map[string]any
}

func (p place) manifest() (m manifest, ok bool) {
	return m, json.Unmarshal([]byte(p.text("package.json")), &m) == nil
}

// node returns the commands of a package that this package manager installs. The packages of a monorepo share the lock
// file of a folder above.
func node(p place, manager string, locks []string, frozen func(place) string) (test, setup string) {
	m, ok := p.manifest()
	if !ok || managerOf(p) != manager {
		return "", ""
	}
	if script := m.Scripts["test"]; script != "" && !noTest.MatchString(script) {
		test = manager + " test"
	}
	if locked, ok := p.nearest(locks...); ok {
		return test, locked.command(frozen(locked))
	}
	if len(m.Dependencies)+len(m.DevDependencies) > 0 {
		setup = p.command(manager + " install")
	}
	return test, setup
}

// managerOf returns the package manager that the nearest package.json with the key packageManager names, or that of
// the nearest lock file.
func managerOf(p place) string {
	locks := map[string][]string{"pnpm": pnpmLocks, "yarn": yarnLocks, "npm": npmLocks}
	for up := p; ; up.dir = path.Dir(up.dir) {
		m, _ := up.manifest()
		if name, _, _ := strings.Cut(m.PackageManager, "@"); locks[name] != nil {
			return name
		}
		for _, name := range []string{"pnpm", "yarn", "npm"} {
			if up.first(locks[name]...) != "" {
				return name
			}
		}
		if up.dir == "." {
			return "npm"
		}
	}
}

var noTest = lazyregexp.New(`no test specified`) // what `npm init` writes
