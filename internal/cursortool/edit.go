package cursortool

import (
	"encoding/json"
	"errors"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const writeDescription = `Write a file of the user's workspace: make it, or replace all of its content. ` +
	`The content is written exactly as given. To change a part of a file use PatchEdit.`

const writeSchema = `{
"type": "object",
"properties": {
	"path": {"type": "string", "minLength": 1, "description": "The file, absolute or relative to the workspace"},
	"contents": {"type": "string", "description": "The whole content of the file"}
},
"required": ["path", "contents"]
}`

const patchDescription = `Replace a text in a file of the user's workspace by another one. ` +
	`old_string must be in the file exactly once, white space included: give enough of the lines around it, without the line numbers that Read shows. ` +
	`With replace_all every occurrence is replaced. An empty old_string fills a file that is empty. ` +
	`The line ends of the file are kept whichever ones you write.`

const patchSchema = `{
"type": "object",
"properties": {
	"path": {"type": "string", "minLength": 1, "description": "The file, absolute or relative to the workspace"},
	"old_string": {"type": "string", "description": "The text to replace, as it is in the file"},
	"new_string": {"type": "string", "description": "The text to put in its place"},
	"replace_all": {"type": "boolean", "description": "Replace every occurrence"}
},
"required": ["path", "old_string", "new_string"]
}`

// editInput is what a model gives to Write and PatchEdit, under all the names that models use.
type editInput struct {
	pathInput
	Contents *string `json:"contents"`
	Content  *string `json:"content"`
	FileText *string `json:"file_text"`

	Old      *string `json:"old_string"`
	OldCamel *string `json:"oldString"`
	OldStr   *string `json:"old_str"`
	OldText  *string `json:"old_text"`
	New      *string `json:"new_string"`
	NewCamel *string `json:"newString"`
	NewStr   *string `json:"new_str"`
	NewText  *string `json:"new_text"`
	All      truth   `json:"replace_all"`
	AllCamel truth   `json:"replaceAll"`
}

func (in *editInput) contents() *string { return given(in.Contents, in.Content, in.FileText) }
func (in *editInput) before() *string   { return given(in.Old, in.OldCamel, in.OldStr, in.OldText) }
func (in *editInput) after() *string    { return given(in.New, in.NewCamel, in.NewStr, in.NewText) }

func given(texts ...*string) *string {
	for _, t := range texts {
		if t != nil {
			return t
		}
	}
	return nil
}

// writeInput and patchInput are editInput with the demands of the two tools.
type (
	writeInput struct{ editInput }
	patchInput struct{ editInput }
)

func (in *writeInput) check() error {
	if in.contents() == nil {
		return errors.New("contents is required: give the whole content of the file, \"\" for an empty one")
	}
	return in.pathInput.check()
}

func (in *patchInput) check() error {
	switch old, text := in.before(), in.after(); {
	case old == nil || text == nil:
		return errors.New("old_string and new_string are required")
	case *old == *text:
		return errors.New("old_string and new_string are equal, so there is nothing to change")
	}
	return in.pathInput.check()
}

func writeCard(args json.RawMessage) *agentv1.ToolCall {
	var in editInput
	peek(args, &in)
	return editCard(in.path(), in.contents())
}

func patchCard(args json.RawMessage) *agentv1.ToolCall {
	var in editInput
	peek(args, &in)
	return editCard(in.path(), in.after())
}

func editCard(path string, content *string) *agentv1.ToolCall {
	args := &agentv1.EditArgs{Path: clean(path)}
	if content != nil {
		args.StreamContent = new(clean(*content))
	}
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_EditToolCall{EditToolCall: &agentv1.EditToolCall{Args: args}}}
}
