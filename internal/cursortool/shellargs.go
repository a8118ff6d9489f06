package cursortool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const (
	shellBlock = 30_000        // ms that a command may take in the foreground
	shellHard  = 86_400_000    // ms after which the client ends a command in any case
	shellSpill = 40_000        // bytes of output beyond which the client keeps it in a file
	shellMost  = math.MaxInt32 // ms, the most that the protocol can say
)

const shellDescription = `Run a command in the user's shell, in their workspace, and return its output and exit code. ` +
	`Quote paths that contain spaces. Use the other tools, not this one, to read, search and change files. ` +
	`A command that takes longer than block_until_ms goes on in the background and its shell_id is returned: ` +
	`wait for it with AwaitShell. Use block_until_ms 0 for servers and watchers. ` +
	`The user may be asked first; when they refuse, do not run the same command again.`

const shellSchema = `{
"type": "object",
"properties": {
	"command": {"type": "string", "minLength": 1, "description": "The command line, as it would be typed into the shell"},
	"description": {"type": "string", "description": "What it does, in five to ten words, for the user"},
	"working_directory": {"type": "string", "description": "Absolute path of the directory to run in; the workspace when left out"},
	"block_until_ms": {"type": "number", "minimum": 0, "description": "How long to wait in the foreground, in milliseconds; 30000 when left out, 0 to go to the background at once"},
	"notify_on_output": {
		"type": "object",
		"description": "Have the user's client report lines of a command in the background",
		"properties": {
			"pattern": {"type": "string", "description": "Regular expression of the lines to report"},
			"reason": {"type": "string", "description": "Why they matter"},
			"debounce_ms": {"type": "number", "minimum": 0, "description": "Time between two reports"},
			"notification_limit": {"type": "integer", "minimum": 1, "description": "How many reports at most"}
		},
		"required": ["pattern", "reason"]
	}
},
"required": ["command"]
}`

// shellInput is what a model gives to Shell.
type shellInput struct {
	Command     string        `json:"command"`
	Description string        `json:"description"`
	Dir         string        `json:"working_directory"`
	Block       *milliseconds `json:"block_until_ms"`
	Notify      *struct {
		Pattern  string   `json:"pattern"`
		Reason   string   `json:"reason"`
		Debounce *float64 `json:"debounce_ms"`
		Limit    *int32   `json:"notification_limit"`
	} `json:"notify_on_output"`
}

func (in *shellInput) check() error {
	if strings.TrimSpace(in.Command) == "" {
		return errors.New("command is required and must not be blank")
	}
	return nil
}

func (in *shellInput) block() int32 {
	if in.Block == nil {
		return shellBlock
	}
	return int32(*in.Block)
}

// args returns what the client is asked to run (section 5.3).
func (in *shellInput) args(call Call, env *Env) *agentv1.ShellArgs {
	a := &agentv1.ShellArgs{
		Command:                  in.Command,
		WorkingDirectory:         first(resolve(env.Root, in.Dir), env.Root),
		Timeout:                  in.block(),
		TimeoutBehavior:          agentv1.TimeoutBehavior_TIMEOUT_BEHAVIOR_BACKGROUND,
		HardTimeout:              new(int32(shellHard)),
		FileOutputThresholdBytes: new(uint64(shellSpill)),
		ToolCallId:               string(call.ID),
		ParsingResult:            &agentv1.ShellCommandParsingResult{ParsingFailed: true},
		ConversationId:           new(env.Session),
	}
	if in.Description != "" {
		a.Description = new(in.Description)
	}
	if words := simpleCommand(in.Command); words != nil {
		a.SimpleCommands = []string{in.Command}
		a.ParsingResult = parsed(in.Command, words)
	}
	if n := in.Notify; n != nil && n.Pattern != "" {
		a.OutputNotification = &agentv1.ShellOutputNotificationConfig{
			Pattern: n.Pattern, Reason: n.Reason, Debounce: n.Debounce, NotificationLimit: n.Limit,
		}
	}
	return a
}

// simpleCommand returns the words of a command that is nothing but words: no quotes, expansions,
// operators, assignments or comments. For any other it returns nil, and the client has to judge it
// as a whole: its list of allowed commands goes by what we say here.
func simpleCommand(command string) []string {
	plain := func(r rune) bool {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return true
		default:
			return strings.ContainsRune(" -_./:,@+=", r)
		}
	}
	for _, r := range command {
		if !plain(r) {
			return nil
		}
	}
	words := strings.Fields(command)
	if len(words) == 0 || strings.ContainsAny(words[0], "=") || reserved[words[0]] {
		return nil
	}
	return words
}

// reserved are words that begin something else than a simple command, or that run a command given
// as their arguments.
var reserved = map[string]bool{
	"if": true, "then": true, "else": true, "elif": true, "fi": true, "for": true, "while": true,
	"until": true, "do": true, "done": true, "case": true, "esac": true, "function": true,
	"select": true, "time": true, "coproc": true, "eval": true, "exec": true, "source": true, ".": true,
}

func parsed(command string, words []string) *agentv1.ShellCommandParsingResult {
	e := &agentv1.ShellCommandParsingResult_ExecutableCommand{Name: words[0], FullText: command}
	for _, w := range words[1:] {
		e.Args = append(e.Args, &agentv1.ShellCommandParsingResult_ExecutableCommandArg{Type: "word", Value: w})
	}
	return &agentv1.ShellCommandParsingResult{
		ExecutableCommands: []*agentv1.ShellCommandParsingResult_ExecutableCommand{e},
	}
}

// milliseconds is a time as models write it: a number, or one in quotes.
type milliseconds int32

// UnmarshalJSON accepts numbers that are not negative, also in quotes; parts of a millisecond are
// dropped.
func (m *milliseconds) UnmarshalJSON(b []byte) error {
	f, err := looseNumber(b)
	if err != nil || f < 0 {
		return fmt.Errorf("%.40s is not a number of milliseconds", b)
	}
	*m = milliseconds(min(f, shellMost))
	return nil
}

// shellID is the number of a shell, which models also write in quotes (R05).
type shellID uint32

// UnmarshalJSON accepts whole numbers of 32 bits, also in quotes.
func (id *shellID) UnmarshalJSON(b []byte) error {
	f, err := looseNumber(b)
	if err != nil || f != math.Trunc(f) || f < 0 || f > math.MaxUint32 {
		return fmt.Errorf("%.40s is not a shell_id: give the number that Shell returned", b)
	}
	*id = shellID(f)
	return nil
}

func looseNumber(b []byte) (float64, error) {
	text := string(b)
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return 0, err
		}
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err == nil && math.IsNaN(f) {
		err = strconv.ErrSyntax
	}
	return f, err
}
