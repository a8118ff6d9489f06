package cursortool

import (
	"encoding/json"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// piInput is what a model gives to the tools of the workspace.
type piInput struct {
	pathInput
	Content    string   `json:"content"`
	Command    string   `json:"command"`
	Timeout    *float64 `json:"timeout"`
	Offset     *number  `json:"offset"`
	Limit      *number  `json:"limit"`
	Pattern    string   `json:"pattern"`
	Glob       string   `json:"glob"`
	IgnoreCase *truth   `json:"ignoreCase"`
	Literal    *truth   `json:"literal"`
	Context    *number  `json:"context"`
	Edits      []struct {
		Old string `json:"oldText"`
		New string `json:"newText"`
	} `json:"edits"`
}

// piCard returns the card of a call of one of the workspace's tools, or nil for any other.
func piCard(name string, args json.RawMessage) *agentv1.ToolCall {
	var in piInput
	peek(args, &in)
	path := clean(in.path())
	c := &agentv1.ToolCall{}
	switch name {
	case "read":
		c.Tool = &agentv1.ToolCall_PiReadToolCall{PiReadToolCall: &agentv1.PiReadToolCall{
			Args: &agentv1.PiReadToolArgs{Path: path, Offset: in.Offset.opt(), Limit: in.Limit.opt()},
		}}
	case "bash":
		c.Tool = &agentv1.ToolCall_PiBashToolCall{PiBashToolCall: &agentv1.PiBashToolCall{
			Args: &agentv1.PiBashToolArgs{Command: clean(in.Command), Timeout: in.Timeout},
		}}
	case "edit":
		edit := &agentv1.PiEditToolArgs{Path: path}
		for _, e := range in.Edits {
			edit.Edits = append(edit.Edits, &agentv1.PiEditReplacement{OldText: clean(e.Old), NewText: clean(e.New)})
		}
		c.Tool = &agentv1.ToolCall_PiEditToolCall{PiEditToolCall: &agentv1.PiEditToolCall{Args: edit}}
	case "write":
		c.Tool = &agentv1.ToolCall_PiWriteToolCall{PiWriteToolCall: &agentv1.PiWriteToolCall{
			Args: &agentv1.PiWriteToolArgs{Path: path, Content: clean(in.Content)},
		}}
	case "grep":
		c.Tool = &agentv1.ToolCall_PiGrepToolCall{PiGrepToolCall: &agentv1.PiGrepToolCall{Args: &agentv1.PiGrepToolArgs{
			Pattern: clean(in.Pattern), Path: some(path), Glob: some(clean(in.Glob)), IgnoreCase: in.IgnoreCase.opt(),
			Literal: in.Literal.opt(), Context: in.Context.opt(), Limit: in.Limit.opt(),
		}}}
	case "find":
		c.Tool = &agentv1.ToolCall_PiFindToolCall{PiFindToolCall: &agentv1.PiFindToolCall{
			Args: &agentv1.PiFindToolArgs{Pattern: clean(in.Pattern), Path: some(path), Limit: in.Limit.opt()},
		}}
	case "ls":
		c.Tool = &agentv1.ToolCall_PiLsToolCall{PiLsToolCall: &agentv1.PiLsToolCall{
			Args: &agentv1.PiLsToolArgs{Path: some(path), Limit: in.Limit.opt()},
		}}
	default:
		return nil
	}
	return c
}

// some returns a text as an optional field: nothing for an empty one.
func some(text string) *string {
	if text == "" {
		return nil
	}
	return new(text)
}

// ResultCard returns a copy of card with a plain text as its result, or as its error: for tools of
// the workspace, which know nothing of cards. It is of at most MaxCard bytes.
func ResultCard(card *agentv1.ToolCall, text string, isError bool) *agentv1.ToolCall {
	out := FailedCard(card, text)
	if !isError {
		succeed(out, clean(text))
	}
	Fit(out, MaxCard)
	return out
}

// succeed puts a text into the cards of the workspace's tools; cards of other kinds keep the text as
// their error, since their results have no place for it.
func succeed(card *agentv1.ToolCall, text string) {
	switch c := card.GetTool().(type) {
	case *agentv1.ToolCall_PiReadToolCall:
		c.PiReadToolCall.Result.Result = &agentv1.PiReadToolResult_Success{Success: &agentv1.PiReadToolSuccess{Output: text}}
	case *agentv1.ToolCall_PiBashToolCall:
		c.PiBashToolCall.Result.Result = &agentv1.PiBashToolResult_Success{Success: &agentv1.PiBashToolSuccess{Output: text}}
	case *agentv1.ToolCall_PiEditToolCall:
		c.PiEditToolCall.Result.Result = &agentv1.PiEditToolResult_Success{Success: &agentv1.PiEditToolSuccess{Output: text}}
	case *agentv1.ToolCall_PiWriteToolCall:
		c.PiWriteToolCall.Result.Result = &agentv1.PiWriteToolResult_Success{Success: &agentv1.PiWriteToolSuccess{Output: text}}
	case *agentv1.ToolCall_PiGrepToolCall:
		c.PiGrepToolCall.Result.Result = &agentv1.PiGrepToolResult_Success{Success: &agentv1.PiGrepToolSuccess{Output: text}}
	case *agentv1.ToolCall_PiFindToolCall:
		c.PiFindToolCall.Result.Result = &agentv1.PiFindToolResult_Success{Success: &agentv1.PiFindToolSuccess{Output: text}}
	case *agentv1.ToolCall_PiLsToolCall:
		c.PiLsToolCall.Result.Result = &agentv1.PiLsToolResult_Success{Success: &agentv1.PiLsToolSuccess{Output: text}}
	case *agentv1.ToolCall_McpToolCall:
		c.McpToolCall.Result.Result = &agentv1.McpToolResult_Success{Success: &agentv1.McpSuccess{
			Content: []*agentv1.McpToolResultContentItem{{Content: &agentv1.McpToolResultContentItem_Text{Text: &agentv1.McpTextContent{Text: text}}}},
		}}
	}
}
