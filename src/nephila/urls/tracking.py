"""Query parameters that say who came from where, not what is asked for (U2): the list, and nothing else.

Beside each name stands the service that gives it its one meaning; a name without such a service does not belong here.
A name is added only where the page is the same without it on *any* site; what is cosmetic on one site alone is learned
there (D4) or set for that domain. Names are in lower case and compared so, because links are typed and rewritten by
people.

What must stay true: a name that some sites use for content (``id``, ``ref``, ``source``, ``session``, ``page``) is
never listed.
"""

from __future__ import annotations

TRACKING_PREFIXES = (
    "utm_",  # Google Analytics campaigns, Urchin before it
    "mtm_",  # Matomo campaigns
    "matomo_",  # Matomo campaigns, long form
    "pk_",  # Piwik, as Matomo was called
    "piwik_",  # Piwik, long form
    "hsa_",  # HubSpot ads
    "_hs",  # HubSpot e-mail: _hsenc, _hsmi
    "__hs",  # HubSpot visitors: __hssc, __hstc, __hsfp
    "fb_action_",  # Meta: fb_action_ids, fb_action_types
    "elqtrack",  # Oracle Eloqua: elqTrack, elqTrackId
    "oly_",  # Omeda Olytics: oly_anon_id, oly_enc_id
    "bsft_",  # Blueshift
    "vero_",  # Vero: vero_conv, vero_id
    "at_custom",  # Piano (AT Internet): at_custom1 to at_custom9
    "wt.",  # Webtrends: WT.mc_id, WT.srch, WT.nav
    "guce_",  # Yahoo's consent pages: guce_referrer, guce_referrer_sig
    "adobe_mc",  # Adobe Experience Cloud: adobe_mc, adobe_mc_ref, adobe_mc_sdid
)
"""Beginnings of names that are tracking whatever follows."""

TRACKING_NAMES = frozenset(
    {
        # Google Ads, Campaign Manager, Merchant Center, Analytics (cross-domain linker, feeds)
        *("gclid", "gclsrc", "gbraid", "wbraid", "dclid", "gad_source", "gad_campaignid", "srsltid"),
        *("_ga", "_gl", "_gac", "ga_source", "ga_medium", "ga_term", "ga_content", "ga_campaign", "ga_place"),
        # Meta: Facebook, Instagram
        *("fbclid", "fb_source", "fb_ref", "igshid", "igsh", "hc_ref", "hc_location"),
        *("action_object_map", "action_ref_map", "action_type_map"),
        # Microsoft Advertising
        "msclkid",
        # Yandex: Direct, Search, Market; Openstat
        *("yclid", "ysclid", "ymclid", "_openstat"),
        # X, TikTok, LinkedIn, Pinterest, Snapchat, Reddit
        *("twclid", "ttclid", "li_fat_id", "epik", "sccid", "rdt_cid"),
        # Mailchimp, Marketo, HubSpot, Klaviyo, Drip, ActiveCampaign, MailerLite
        *(
            "mc_cid",
            "mc_eid",
            "mkt_tok",
            "hsctatracking",
            "_kx",
            "__s",
            "vgo_ee",
            "ml_subscriber",
            "ml_subscriber_hash",
        ),
        # Emarsys
        *("sc_src", "sc_lid", "sc_uid", "sc_llid", "sc_customer", "sc_eh"),
        # Adobe Analytics, Adobe Advertising
        *("s_cid", "s_kwcid", "ef_id"),
        # Affiliate networks: Impact, CJ, Awin, Rakuten, Wicked Reports, and the click id that most of them append
        *(
            "irclickid",
            "irgwc",
            "cjevent",
            "cjdata",
            "awc",
            "ranmid",
            "raneaid",
            "ransiteid",
            "wickedid",
            "wickedsource",
        ),
        *("zanpid", "rb_clickid", "clickid", "click_id"),
        # Outbrain, Taboola
        *("obclid", "dicbo", "tblci"),
        # Branch, Adjust, Mapp (Webtrekk), etracker, Piano (AT Internet), Comscore
        *("_branch_match_id", "_branch_referrer", "adjust_tracker", "wt_mc", "wt_zmc", "etcc_cmp", "etcc_med", "xtor"),
        *("at_medium", "at_campaign", "ns_mchannel", "ns_source", "ns_campaign", "ns_linkname", "ns_fee"),
        # Oracle Eloqua, Oracle Bronto, Listrak
        *("elqaid", "elqat", "elqcampaignid", "elqcst", "_bta_tid", "_bta_c"),
        *("trk_contact", "trk_msg", "trk_module", "trk_sid"),
        # Alibaba, Baidu
        *("spm", "scm", "bd_vid"),
        # Yahoo's consent counter; WordPress: the same page with the comment form moved
        *("guccounter", "replytocom"),
    }
)
"""Names that are tracking as they stand."""

SESSION_NAMES = frozenset(
    {
        # Java servlets, PHP, ASP.NET, ColdFusion
        *("jsessionid", "phpsessid", "asp.net_sessionid", "cfid", "cftoken", "cfsessionid"),
        # osCommerce, Zen Cart, xt:Commerce, phpBB and many more
        *("oscsid", "zenid", "xtcsid", "sid"),
        # Perl's CGI::Session, BroadVision, SAP
        *("cgisessid", "bv_sessionid", "bv_engineid", "sap-sessionid"),
        # What people call it who write their own
        *("sessionid", "session_id", "sessid", "sess_id"),
    }
)
"""Names of session ids, in the query or as a path parameter (``;jsessionid=...``)."""

SESSION_PREFIXES = ("aspsessionid",)
"""Classic ASP hangs eight random letters on its name."""
