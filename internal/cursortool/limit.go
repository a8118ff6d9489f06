package cursortool

import "time"

// Limits on what goes to the model (section 5.1), in bytes where nothing else is said.
const (
	readText  = 64 << 10
	grepText  = 32 << 10
	grepMost  = 300     // matches
	grepFile  = 100     // matches of one file
	grepLine  = 2 << 10 // of one line
	globMost  = 200     // files
	lsMost    = 1000    // entries
	lsDepth   = 12      // directories below each other
	lintsMost = 200     // diagnostics
	mcpText   = 32 << 10
	mcpItems  = 20       // pieces of content
	maxImage  = 5 << 20  // of one image
	hookText  = 8 << 10  // of one hook
	taskText  = 64 << 10 // of a subagent's last message
)

// Limits on what is kept for the client.
const (
	// MaxCard is what a card should have at most, marshalled.
	MaxCard = 48 << 10
	// editShown is how large a file may be that an edit's card shows before and after.
	editShown = 64 << 10
)

// Limits on one call.
const (
	// patience is how long a client may be silent about what nobody is asked about first.
	patience = 60 * time.Second
	// maxEdit is the largest file that is edited by shipping it.
	maxEdit = 8 << 20
	// maxReads is how many reads one edit may need.
	maxReads = 4096
	// rangeLines is how many lines one of them asks for.
	rangeLines = 1000
	// lintPaths is how many files one call may ask about.
	lintPaths = 50
	// mcpFunctions is how many tools of MCP servers are offered as functions of their own.
	mcpFunctions = 40
)
