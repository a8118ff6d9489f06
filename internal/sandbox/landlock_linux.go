package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	abiquery "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// self is this program, even when its file has been replaced by a newer one.
const self = "/proc/self/exe"

// Supported returns the version of Landlock that the kernel has, and whether it has any.
func Supported() (abi int, ok bool) {
	abi, err := abiquery.LandlockGetABIVersion()
	if err != nil || abi < 1 {
		return 0, false
	}
	return abi, true
}

// What programs need of the system. /proc is safe to read: the kernel keeps a confined
// process from the memory and the environment of those outside.
var (
	systemDirs = []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys", "/nix", "/snap",
		"/run/current-system", "/run/systemd/resolve", "/run/resolvconf", "/var/lib/ca-certificates", "/home/linuxbrew",
	}
	deviceFiles = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"}
	deviceDirs  = []string{"/dev/shm", "/dev/pts"}
	homeFiles   = []string{".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"}
)

// referABI is the first version that can allow files to move between directories; with an
// older one they cannot, whatever the rules say.
const referABI = 2

// restrict holds this process and all that come from it to o, for good.
func restrict(o Options) error {
	abi, ok := Supported()
	if !ok {
		return ErrUnsupported
	}
	if info, err := os.Stat(o.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("the working directory %s does not exist", o.Dir)
	}
	config := landlock.V11
	if !o.NoNetwork {
		config.HandledAccessNet = 0
	}
	write := landlock.RWDirs(existing(append([]string{o.Dir, o.OutputDir, o.Temp}, o.Write...), true)...)
	if abi >= referABI {
		write = write.WithRefer()
	}
	read := append(append(append([]string{}, systemDirs...), o.Read...), programDirs(os.Getenv("PATH"))...)
	return config.BestEffort().Restrict(
		write,
		landlock.RWDirs(existing(deviceDirs, true)...),
		landlock.RWFiles(existing(deviceFiles, false)...),
		landlock.RODirs(existing(read, true)...),
		landlock.ROFiles(existing(append(inHome(homeFiles), o.Read...), false)...),
	)
}

// run becomes the program, on the thread that has dropped its rights.
func run(program string, argv []string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := dropRights(); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", program, syscall.Exec(program, argv, os.Environ()))
}

// existing returns those of the paths that are there: the directories, or what is none.
func existing(paths []string, dirs bool) []string {
	var list []string
	for _, path := range paths {
		if info, err := os.Stat(path); path != "" && err == nil && info.IsDir() == dirs {
			list = append(list, path)
		}
	}
	return list
}

// programDirs returns the directories of PATH, but for those that hold more than programs:
// the home directory and what it is in.
func programDirs(path string) []string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	var list []string
	for _, dir := range filepath.SplitList(path) {
		dir = filepath.Clean(dir)
		if filepath.IsAbs(dir) && dir != "/" && !strings.HasPrefix(filepath.Clean(home)+"/", dir+"/") {
			list = append(list, dir)
		}
	}
	return list
}

func inHome(names []string) []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = filepath.Join(home, name)
	}
	return list
}
