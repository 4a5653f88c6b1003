"""Places of a web site where a crawler has no business (S2): forms, sessions, carts, administration.

Data only, each word with its reason, which a refusal quotes. What must stay true: words are in lower case and are
compared with whole path segments, never with parts of them.
"""

from __future__ import annotations


def _by_word(table: dict[str, str]) -> dict[str, str]:
    """From reasons with their words to words with their reason."""
    return {word: reason for reason, words in table.items() for word in words.split()}


BUILTIN_EXCLUDES = _by_word(
    {
        "sign-in form": "login log-in log_in logon signin sign-in sign_in userlogin user-login wp-login wp-signup auth "
        "oauth oauth2 sso saml special:userlogin special%3auserlogin",
        "ends a session": "logout log-out log_out logoff signout sign-out sign_out special:userlogout "
        "special%3auserlogout",
        "registration form": "signup sign-up sign_up register join-now create-account create_account "
        "special:createaccount special%3acreateaccount",
        "password form": "forgot-password forgot_password forgotpassword lost-password lostpassword password-reset "
        "password_reset reset-password reset_password",
        "administration": "admin administrator wp-admin phpmyadmin cpanel webmail adminer typo3 user-admin",
        "shopping cart": "cart basket shopping-cart shoppingcart shopping_cart add-to-cart add_to_cart addtocart "
        "viewcart warenkorb",
        "checkout": "checkout check-out one-page-checkout kasse",
        "personal account": "account my-account my_account myaccount wishlist wish-list",
        "machine interface": "wp-json xmlrpc",
    }
)
"""Path segments that lead to forms, sessions and carts, each with what is behind it. Whole segments, their extension
aside: ``/login.php`` is one, ``/administration-history`` is none. Drawn from the robots.txt files of common shop,
forum and content systems, which list the same places."""
