package process

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

func bootID() (string, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return id, nil
}

func lookup(pid int) (entry, error) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) { // an empty answer is reported as EIO
		return entry{}, ErrGone
	}
	if err != nil {
		return entry{}, err
	}
	t := p.Proc.P_starttime
	return entry{
		start: fmt.Sprintf("%d.%06d", t.Sec, t.Usec), zombie: p.Proc.P_stat == zombie, parent: int(p.Eproc.Ppid),
	}, nil
}
