package durable

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// OtherOwner returns the name of the user that a file belongs to; empty if it is this process's user, or unknown.
func OtherOwner(path string) string {
	fi, err := os.Stat(path)
	if err != nil {
		return ""
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() {
		return ""
	}
	name := strconv.Itoa(int(st.Uid))
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return name
}
