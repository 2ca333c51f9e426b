"""The table of features: the handler of every method that this server serves. Importing it loads all of them."""

from collections.abc import Mapping
from typing import Final

from tiller_server.lsp.feature import Feature
from tiller_server.lsp.features.ack import ack
from tiller_server.lsp.features.auth_login import auth_login
from tiller_server.lsp.features.auth_logout import auth_logout
from tiller_server.lsp.features.auth_status import auth_status
from tiller_server.lsp.features.background_move import background_move
from tiller_server.lsp.features.background_stop import background_stop
from tiller_server.lsp.features.bash import bash
from tiller_server.lsp.features.blob_read import blob_read
from tiller_server.lsp.features.blob_store import blob_store
from tiller_server.lsp.features.changes_list import changes_list
from tiller_server.lsp.features.changes_resolve import changes_resolve
from tiller_server.lsp.features.checkpoint_list import checkpoint_list
from tiller_server.lsp.features.checkpoint_preview import checkpoint_preview
from tiller_server.lsp.features.checkpoint_restore import checkpoint_restore
from tiller_server.lsp.features.command_complete import command_complete
from tiller_server.lsp.features.command_list import command_list
from tiller_server.lsp.features.compact import compact
from tiller_server.lsp.features.costs import costs
from tiller_server.lsp.features.editor_context import editor_context
from tiller_server.lsp.features.extension_list import extension_list
from tiller_server.lsp.features.extension_press import extension_press
from tiller_server.lsp.features.extension_render import extension_render
from tiller_server.lsp.features.follow_up import follow_up
from tiller_server.lsp.features.model_cycle import model_cycle
from tiller_server.lsp.features.model_list import model_list
from tiller_server.lsp.features.permission_respond import permission_respond
from tiller_server.lsp.features.permission_rules import permission_rules
from tiller_server.lsp.features.plan_respond import plan_respond
from tiller_server.lsp.features.prompt import prompt
from tiller_server.lsp.features.question_respond import question_respond
from tiller_server.lsp.features.queue_update import queue_update
from tiller_server.lsp.features.resources_reload import resources_reload
from tiller_server.lsp.features.review import review
from tiller_server.lsp.features.run_cancel import run_cancel
from tiller_server.lsp.features.run_retry import run_retry
from tiller_server.lsp.features.session_close import session_close
from tiller_server.lsp.features.session_configure import session_configure
from tiller_server.lsp.features.session_delete import session_delete
from tiller_server.lsp.features.session_export import session_export
from tiller_server.lsp.features.session_fork import session_fork
from tiller_server.lsp.features.session_label import session_label
from tiller_server.lsp.features.session_list import session_list
from tiller_server.lsp.features.session_navigate import session_navigate
from tiller_server.lsp.features.session_open import session_open
from tiller_server.lsp.features.session_read import session_read
from tiller_server.lsp.features.session_rename import session_rename
from tiller_server.lsp.features.session_stats import session_stats
from tiller_server.lsp.features.session_tree import session_tree
from tiller_server.lsp.features.status import status
from tiller_server.lsp.features.steer import steer
from tiller_server.lsp.features.subscribe import subscribe
from tiller_server.lsp.features.task_changes import task_changes
from tiller_server.lsp.features.task_discard import task_discard
from tiller_server.lsp.features.task_merge import task_merge
from tiller_server.lsp.features.task_resume import task_resume
from tiller_server.lsp.features.task_stop import task_stop
from tiller_server.lsp.features.thinking_cycle import thinking_cycle
from tiller_server.lsp.features.trust import trust

FEATURES: Final[Mapping[str, Feature]] = {
    one.name: one
    for one in (
        ack,
        auth_login,
        auth_logout,
        auth_status,
        plan_respond,
        background_move,
        background_stop,
        task_resume,
        task_stop,
        task_changes,
        task_merge,
        task_discard,
        bash,
        changes_list,
        changes_resolve,
        checkpoint_list,
        checkpoint_preview,
        checkpoint_restore,
        command_complete,
        command_list,
        compact,
        editor_context,
        extension_list,
        extension_press,
        extension_render,
        follow_up,
        model_cycle,
        model_list,
        permission_respond,
        permission_rules,
        prompt,
        question_respond,
        queue_update,
        resources_reload,
        review,
        run_cancel,
        run_retry,
        session_close,
        session_configure,
        session_delete,
        session_export,
        session_fork,
        session_label,
        session_list,
        session_navigate,
        session_open,
        session_read,
        session_rename,
        session_stats,
        blob_read,
        blob_store,
        session_tree,
        status,
        costs,
        steer,
        subscribe,
        thinking_cycle,
        trust,
    )
}
"""By method. `lsp/methods.py` names the same methods before anything is loaded."""
