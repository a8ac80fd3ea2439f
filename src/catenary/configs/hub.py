"""The config.json of a hub id: the local cache first, then the hub, with every refusal in one line."""

from __future__ import annotations

from pathlib import Path

from catenary.configs.strict_json import SIZE_LIMIT
from catenary.errors import InvalidInput, MissingResource, invalid

FILE = "config.json"
TIMEOUT = 10.0
"""Seconds to wait for the hub's first answer; huggingface_hub's own default."""


class HubUnreachable(MissingResource):
    """The hub could not be asked: offline, blocked, or not answering."""


def fetch_config(repo: str, revision: str | None = None) -> Path:
    """Path of the cached ``config.json`` of the hub id ``repo``, downloaded if it is not there yet.

    Raises:
        InvalidInput: ``repo`` cannot be a hub id.
        MissingResource: the hub has no such model, revision or file, or wants a token for it.
        HubUnreachable: not in the cache, and the hub cannot be asked.
    """
    import huggingface_hub
    from huggingface_hub import constants, errors

    name = f"hub id {repo!r}" + (f" at revision {revision!r}" if revision else "")
    token = "set HF_TOKEN or run `hf auth login`"
    cache = f"not in the Hugging Face cache {constants.HF_HUB_CACHE}"
    try:
        cached = huggingface_hub.try_to_load_from_cache(repo, FILE, revision=revision)
        if isinstance(cached, str):
            return Path(cached)
        _ask(repo, revision)
        return Path(huggingface_hub.hf_hub_download(repo, FILE, revision=revision))
    except InvalidInput:
        raise
    except errors.HFValidationError:
        raise invalid("model", "must be a path, a preset or a hub id such as 'owner/name'", repo[:100]) from None
    except errors.GatedRepoError:
        accept = f"accept its terms on https://huggingface.co/{repo}, then {token}"
        raise MissingResource(f"{name} is gated: {accept}") from None
    except errors.RevisionNotFoundError:
        raise MissingResource(f"{name}: there is no such revision; leave it out for the newest") from None
    except errors.RepositoryNotFoundError:
        raise MissingResource(f"{name} is {cache} and not on the hub, or it is private: {token}") from None
    except errors.OfflineModeIsEnabled:
        raise HubUnreachable(f"{name} is {cache}, and the hub is not asked: HF_HUB_OFFLINE is set") from None
    except errors.LocalEntryNotFoundError:
        raise HubUnreachable(f"{name} is {cache}, and there is no connection to {constants.ENDPOINT}") from None
    except errors.EntryNotFoundError:
        raise MissingResource(f"{name} has no {FILE}; it may hold an adapter or GGUF files alone") from None
    except Exception as error:  # the transport library's own classes differ between versions of huggingface_hub
        what = " ".join(f"{type(error).__name__}: {error}".split())[:160]
        raise HubUnreachable(f"{name} is {cache}, and {constants.ENDPOINT} did not answer: {what}") from None


def _ask(repo: str, revision: str | None) -> None:
    """One request for the file's head, not repeated: without a network the download would retry for half a minute."""
    import huggingface_hub

    url = huggingface_hub.hf_hub_url(repo, FILE, revision=revision)
    size = huggingface_hub.get_hf_file_metadata(url, timeout=TIMEOUT).size
    if size is not None and size > SIZE_LIMIT:
        raise invalid(f"{FILE} of {repo}", f"must be at most {SIZE_LIMIT} bytes", size)
