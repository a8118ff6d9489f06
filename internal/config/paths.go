package config

import (
	"os"
	"path/filepath"
)

// DefaultPath returns where the configuration is when nothing else is said:
// $XDG_CONFIG_HOME/roost/config.yaml, or ~/.config/roost/config.yaml.
func DefaultPath() string {
	return filepath.Join(xdg("XDG_CONFIG_HOME", ".config"), "roost", "config.yaml")
}

// DefaultDataDir returns where sessions are kept when nothing else is said:
// $XDG_DATA_HOME/roost, or ~/.local/share/roost.
func DefaultDataDir() string {
	return filepath.Join(xdg("XDG_DATA_HOME", ".local/share"), "roost")
}

// DefaultSocket returns the Unix socket of a server whose data is in dataDir:
// $XDG_RUNTIME_DIR/roost/roost.sock for the default directory, so that the socket goes when
// the user logs out, and dataDir/run/roost.sock for any other or without a runtime
// directory. The folder of the socket is roost's own, to be made with mode 0700.
func DefaultSocket(dataDir string) string {
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	if filepath.IsAbs(runtime) && filepath.Clean(dataDir) == DefaultDataDir() {
		return filepath.Join(runtime, "roost", "roost.sock")
	}
	return filepath.Join(dataDir, "run", "roost.sock")
}

// xdg returns the directory a variable names, or the one below the user's home. The XDG
// specification says to ignore relative values.
func xdg(variable, below string) string {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = string(filepath.Separator)
	}
	return filepath.Join(home, filepath.FromSlash(below))
}

// DefaultSkills returns the directory of the user's own skills, beside the configuration.
func DefaultSkills() string { return filepath.Join(filepath.Dir(DefaultPath()), "skills") }
